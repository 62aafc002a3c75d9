package journal_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

// FuzzDecode: no bytes make it panic; what is accepted is written so that it reads the same, and nothing of it is lost.
func FuzzDecode(f *testing.F) {
	for _, kind := range journal.Kinds() {
		e := sample(kind)
		text, err := e.Encode()
		require.NoError(f, err)
		f.Add(text)
		f.Add([]byte(strings.Replace(string(text), `"data":{`, `"x":[1e400,{"a":"\u2028"}],"data":{"y":{"z":null},`, 1)))
	}
	f.Add([]byte(`{"type":"leadership.confirm.v1","data":{"session":7},"subject":"g/c"}`))
	f.Add([]byte("this is not JSON {{{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := journal.Decode(text)
		r := journal.NewRecord(1, at(0), "leadership.g._.raw", text)
		require.Error(t, r.Err, "no event belongs on that subject")
		requireSameIfSpaced(t, text)
		if err != nil {
			require.ErrorIs(t, err, journal.ErrInvalid)
			require.NotEmpty(t, faults(err))
			return
		}
		require.NoError(t, e.Validate())
		require.Regexp(t, subjects, e.Subject())
		once, err := e.Encode()
		require.NoError(t, err)
		if len(once) > journal.MaxSize {
			return // escapes may be written longer than they were read
		}
		read, err := journal.Decode(once)
		require.NoError(t, err)
		twice, err := read.Encode()
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		requireNothingLost(t, e, text, once)
	})
}

// requireNothingLost fails for a member of the envelope or of the data that was read and is not written; but for those
// that say nothing: null, false, 0, "" and empty objects and arrays.
func requireNothingLost(t *testing.T, e journal.Event, read, written []byte) {
	t.Helper()
	was, is := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	require.NoError(t, json.Unmarshal(read, &was))
	require.NoError(t, json.Unmarshal(written, &is))
	for name := range was {
		if name != "time" || !e.Time.IsZero() {
			require.Contains(t, is, name)
		}
	}
	wasData, isData := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	require.NoError(t, json.Unmarshal(was["data"], &wasData))
	require.NoError(t, json.Unmarshal(is["data"], &isData))
	for name, value := range wasData {
		if !saysNothing(value) {
			require.Contains(t, isData, name)
		}
	}
}

func saysNothing(v jsontext.Value) bool {
	text := string(v)
	switch v.Kind() {
	case jsontext.KindNull, jsontext.KindFalse:
		return true
	case jsontext.KindNumber:
		return strings.Trim(text, "-0.eE+") == ""
	case jsontext.KindString:
		return text == `""` || text == `"0s"` || strings.HasPrefix(text, `"0001-01-01`) || strings.Trim(text, `"+-.0hmsnuµμ`) == ""
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		return strings.Trim(text, "{}[] \t\r\n") == ""
	}
	return false
}

// FuzzDecodeData: no bytes make it panic; what is accepted reads the same when it is written, and what is accepted
// strictly has no member that is only kept.
func FuzzDecodeData(f *testing.F) {
	for _, kind := range journal.Kinds() {
		e := sample(kind)
		text, err := json.Marshal(e.Data)
		require.NoError(f, err)
		f.Add(kind, text)
		f.Add(kind, []byte(`{"policy":{"x":1},"targets":[{"y":2}],"entry":{"z":3},"lock":{"z":3},"ready":false,`+
			`"until":"2026-08-01T10:00:00+02:00"}`))
	}
	f.Add("grnt", []byte(`{}`))
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		data, err := journal.DecodeData(kind, text)
		_, strictly := journal.DecodeData(kind, text, json.RejectUnknownMembers(true))
		if err != nil {
			require.ErrorIs(t, err, journal.ErrInvalid)
			require.Error(t, strictly)
			return
		}
		require.Equal(t, kind, data.Kind())
		once, err := json.Marshal(data, json.Deterministic(true))
		require.NoError(t, err)
		read, err := journal.DecodeData(kind, once)
		require.NoError(t, err)
		twice, err := json.Marshal(read, json.Deterministic(true))
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		_, again := journal.DecodeData(kind, once, json.RejectUnknownMembers(true))
		require.Equal(t, strictly == nil, again == nil, "%v / %v", strictly, again)
	})
}
