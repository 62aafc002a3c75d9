package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

// text is a valid event with something put in another's place.
func text(t *testing.T, kind, before, after string) []byte {
	t.Helper()
	e := sample(kind)
	valid, err := e.Encode()
	require.NoError(t, err)
	require.Contains(t, string(valid), before)
	return []byte(strings.Replace(string(valid), before, after, 1))
}

func TestDecodeNamesTheWrongMember(t *testing.T) {
	for _, c := range []struct{ kind, old, new, field, problem string }{
		{"confirm", `"specversion":"1.0"`, `"specversion":"0.3"`, "specversion", `is "0.3"`},
		{"confirm", `"specversion":"1.0",`, ``, "specversion", `is ""`},
		{"confirm", `"specversion":"1.0"`, `"specversion":1.0`, "specversion", "is a number where a string is wanted"},
		{"confirm", `"specversion":"1.0"`, `"Specversion":"1.0"`, "specversion", `is ""`},
		{"confirm", `"id":"01978d60-0d1c-7a52-9f0e-0d3c5a3d5b11"`, `"id":7`, "id", "is a number where a string is wanted"},
		{"confirm", `"source":"candidate/jm-1"`, `"source":null`, "source", "is missing"},
		{"confirm", `"source":"candidate/jm-1"`, `"source":{}`, "source", "is an object where a string is wanted"},
		{"confirm", `leadership.confirm.v1`, `leadership.confirn.v1`, "type", `"confirn" is no kind of event; did you mean "confirm"?`},
		{"confirm", `leadership.confirm.v1`, `leadership.zzzzzzzz.v1`, "type", `"zzzzzzzz" is no kind of event`},
		{"confirm", `leadership.confirm.v1`, `leadership.confirm.v2`, "type", `"leadership.confirm.v2", which is not of the form`},
		{"confirm", `leadership.confirm.v1`, `confirm`, "type", "leadership.<kind>.v1"},
		{"confirm", `leadership.confirm.v1`, `leadership.v1`, "type", "leadership.<kind>.v1"},
		{"confirm", `leadership.confirm.v1`, `leadership..v1`, "type", `"" is no kind`},
		{"confirm", `leadership.confirm.v1`, `leadership.Confirm.v1`, "type", `did you mean "confirm"?`},
		{"confirm", `"subject":"flink-1/restserver"`, `"subject":"flink-1"`, "subject", "the component is missing"},
		{"confirm", `"subject":"flink-1/restserver"`, `"subject":"flink-1/"`, "subject", "has nothing after the /"},
		{"confirm", `"subject":"flink-1/restserver"`, `"subject":"/restserver"`, "subject", "the group is missing"},
		{"confirm", `"subject":"flink-1/restserver"`, `"subject":["flink-1"]`, "subject", "is an array where a string is wanted"},
		{"join", `"subject":"flink-1"`, `"subject":"flink-1/"`, "subject", "has nothing after the /"},
		{"takeover", `"subject":"_"`, `"subject":"_/"`, "subject", "has nothing after the /"},
		{"takeover", `"subject":"_"`, `"subject":"_/_"`, "subject", `is "_" for a takeover`},
		{"confirm", `"time":"2026-08-01T10:00:00Z"`, `"time":"2026-08-01 10:00:00"`, "time", "cannot parse"},
		{"confirm", `"time":"2026-08-01T10:00:00Z"`, `"time":1785578400`, "time", "is a number where an RFC 3339 time is wanted"},
		{"confirm", `"data":{`, `"dato":{`, "data", "is missing"},
		{"confirm", `"candidate":"jm-1"`, `"candidate":["jm-1"]`, "data.candidate", "is an array where a string is wanted"},
		{"confirm", `"candidate":"jm-1"`, `"candidate":true`, "data.candidate", "is true where a string is wanted"},
		{"confirm", `"candidate":"jm-1"`, `"candidate":null`, "data.candidate", "is missing"},
		{"confirm", `"a":"1"`, `"a":1`, "data.properties.a", "is a number where a string is wanted"},
		{"confirm", `"properties":{`, `"properties":[],"x":{`, "data.properties", "is an array where an object is wanted"},
		{"confirm", `"attempt":1785578400000`, `"attempt":"1"`, "data.attempt", "is a string where a whole number from 0 is wanted"},
		{"confirm", `"attempt":1785578400000`, `"attempt":-1`, "data.attempt", "is the number -1 where a whole number from 0 is wanted"},
		{"confirm", `"attempt":1785578400000`, `"attempt":1.5`, "data.attempt", "is the number 1.5 where"},
		{"confirm", `"attempt":1785578400000`, `"attempt":1e3`, "data.attempt", "is the number 1e3 where"},
		{"confirm", `"attempt":1785578400000`, `"attempt":9007199254740992`, "data.attempt", "2^53-1"},
		{"confirm", `"attempt":1785578400000`, `"attempt":18446744073709551616`, "data.attempt", "is the number 18446744073709551616 where"},
		{"confirm", `"attempt":1785578400000`, `"attempt":` + strings.Repeat("9", 9999), "data.attempt", "is the number 999"},
		{"join", `"priority":-3`, `"priority":0.5`, "data.priority", "is the number 0.5 where a whole number is wanted"},
		{"join", `"priority":-3`, `"priority":9007199254740993`, "data.priority", "2^53-1"},
		{"join", `"components":["restserver",`, `"components":["restserver",7,`, "data.components[1]", "is a number where a string is wanted"},
		{"join", `"components":[`, `"components":"restserver","x":[`, "data.components", "is a string where an array is wanted"},
		{"ready", `"ready":true`, `"ready":"yes"`, "data.ready", "is a string where true or false is wanted"},
		{"ready", `"ready":true,`, ``, "data.ready", "is missing; it is true or false"},
		{"ready", `"ready":true`, `"ready":null`, "data.ready", "is missing; it is true or false"},
		{"retry", `"after":"1.5s"`, `"after":30`, "data.after", `is a number where a duration such as "30s" is wanted`},
		{"retry", `"after":"1.5s"`, `"after":"30"`, "data.after", `"30" is no duration; write it like 30s`},
		{"grant", `"lock":{"kind":"k8s/configmap","revision":77}`, `"lock":7`, "data.lock", "is a number where an object is wanted"},
		{"grant", `"revision":77`, `"revision":"77"`, "data.lock.revision", "is a string where a whole number from 0 is wanted"},
		{"grant", `"cause":[39,40]`, `"cause":[39,"40"]`, "data.cause[1]", "is a string where"},
		{"watch", `"address":"http://10.0.0.1:8081"`, `"address":8081`, "data.entry.address", "is a number where a string"},
		{"policy", `"policy":{`, `"policies":{`, "data.policy", "is missing; it is the group's whole policy"},
		{"policy", `"policy":{`, `"policy":null,"x":{`, "data.policy", "is missing"},
		{"policy", `"policy":{`, `"policy":"strict","x":{`, "data.policy", "is a string where an object is wanted"},
		{"policy", `"period":"10s"`, `"period":10`, "data.policy.health.period", `a duration such as "30s"`},
		{"policy", `"flapping":6`, `"flapping":-6`, "data.policy", "flapping: -6 is less than 1"},
		{"policy", `"rest*":"restore"`, `"[":"restore"`, "data.policy", `onErase: pattern "["`},
		{"policy", `"guarded":true`, `"guarded":1`, "data.targets[0].guarded", "is a number where true or false is wanted"},
		{"policy", `"targets":[`, `"targets":[[],`, "data.targets[0]", "is an array where an object is wanted"},
	} {
		t.Run(c.kind+" "+c.new[:min(len(c.new), 40)], func(t *testing.T) {
			_, err := journal.Decode(text(t, c.kind, c.old, c.new))
			requireFault(t, err, c.field, c.problem)
		})
	}
}

// A watch that does not say what stands in the target would be taken for an erasure.
func TestDecodeWatchSaysWhatItSaw(t *testing.T) {
	const at = `{"specversion":"1.0","id":"1","source":"observer/k8s","type":"leadership.watch.v1","subject":"g/c","data":`
	_, err := journal.Decode([]byte(at + `{"target":"cm","revision":5}}`))
	requireFault(t, err, "data.entry", "is missing; it is what the target shows, or null for nothing")
	for _, data := range []string{`{"target":"cm","revision":5,"entry":null}`, `{"target":"cm","gap":true}`} {
		e, err := journal.Decode([]byte(at + data + "}"))
		require.NoError(t, err)
		require.Nil(t, e.Data.(*journal.Watch).Entry)
	}
}

func TestDecodeRefusesWhatIsNoObject(t *testing.T) {
	for _, c := range []struct{ data, problem string }{
		{"null", "is null where an object is wanted"},
		{"7", "is a number where an object is wanted"},
		{`"x"`, "is a string where an object is wanted"},
		{"[]", "is an array where an object is wanted"},
		{"true", "is true where an object is wanted"},
	} {
		const at = `{"specversion":"1.0","id":"1","source":"a","type":"leadership.release.v1","subject":"g/c","data":`
		_, err := journal.Decode([]byte(at + c.data + "}"))
		requireFault(t, err, "data", c.problem)
		_, err = journal.Decode([]byte(c.data))
		require.ErrorIs(t, err, journal.ErrInvalid)
	}
	_, err := journal.Decode([]byte("[]"))
	requireFault(t, err, "event", "is an array where an object is wanted")
}

func TestDecodeRefusesWhatIsNoJSON(t *testing.T) {
	nested := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	for _, c := range []struct{ name, old, new, field, problem string }{
		{"a member twice", `"attempt":`, `"attempt":1,"attempt":`, "data.attempt", "stands there twice"},
		{"a member twice, escaped", `"attempt":`, `"\u0061ttempt":1,"attempt":`, "data.attempt", "stands there twice"},
		{"an unknown member twice", `"attempt":`, `"x":1,"x":2,"attempt":`, "data.x", "stands there twice"},
		{"a nested unknown member twice", `"attempt":`, `"x":{"y":[{"z":1,"z":1}]},"attempt":`, "data.x.y[0].z", "stands there twice"},
		{"an attribute twice", `"id":`, `"id":"2","id":`, "id", "stands there twice"},
		{"an extension twice", `"id":`, `"x":"2","x":"3","id":`, "x", "stands there twice"},
		{"a property twice", `"a":"1"`, `"a":"1","a":"1"`, "data.properties.a", "stands there twice"},
		{"data twice", `"data":`, `"data":{},"data":`, "data", "stands there twice"},
		{"not UTF-8", `"candidate":"jm-1"`, "\"candidate\":\"jm-\xff\"", "data.candidate", "invalid UTF-8"},
		{"half a surrogate", `"candidate":"jm-1"`, `"candidate":"jm-\ud800"`, "data.candidate", "is not JSON"},
		{"an unknown member not UTF-8", `"attempt":`, "\"x\":\"\xc0\x80\",\"attempt\":", "data.x", "invalid UTF-8"},
		{"an extension not UTF-8", `"id":`, "\"x\":\"\xff\",\"id\":", "x", "invalid UTF-8"},
		{"NaN", `"attempt":1785578400000`, `"attempt":NaN`, "data.attempt", "is not JSON"},
		{"Infinity", `"attempt":1785578400000`, `"attempt":Infinity`, "data.attempt", "is not JSON"},
		{"a plus", `"attempt":1785578400000`, `"attempt":+1`, "data.attempt", "is not JSON"},
		{"a leading zero", `"attempt":1785578400000`, `"attempt":01`, "data", "is not JSON"},
		{"hexadecimal", `"attempt":1785578400000`, `"attempt":0x1`, "data", "is not JSON"},
		{"a control character", `"candidate":"jm-1"`, "\"candidate\":\"jm\n1\"", "data.candidate", "is not JSON"},
		{"a comment", `"attempt":`, `/* one */"attempt":`, "data", "is not JSON"},
		{"a trailing comma", `"attempt":1785578400000`, `"attempt":1,`, "data", "is not JSON"},
		{"deep nesting", `"attempt":`, `"x":` + nested + `,"attempt":`, "event", "nests deeper than 64 levels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := journal.Decode(text(t, "confirm", c.old, c.new))
			require.ErrorIs(t, err, journal.ErrInvalid)
			require.Len(t, faults(err), 1)
			require.True(t, strings.HasPrefix(faults(err)[0][0], c.field), "%v", err)
			require.Contains(t, err.Error(), c.problem)
			require.Less(t, len(err.Error()), 1000)
		})
	}
}

func TestDecodeRefusesTornText(t *testing.T) {
	e := sample("policy")
	whole, err := e.Encode()
	require.NoError(t, err)
	for n := range whole {
		_, err := journal.Decode(whole[:n])
		require.ErrorIs(t, err, journal.ErrInvalid, "%d bytes", n)
		require.Len(t, faults(err), 1)
	}
	for _, more := range []string{"{}", "x", ",", "\x00"} {
		_, err := journal.Decode(append(whole[:len(whole):len(whole)], more...))
		require.ErrorIs(t, err, journal.ErrInvalid)
	}
	_, err = journal.Decode([]byte(" \t\r\n" + string(whole) + " \n"))
	require.NoError(t, err, "white space around it is JSON")
	_, err = journal.Decode([]byte("\ufeff" + string(whole)))
	require.ErrorIs(t, err, journal.ErrInvalid, "a byte order mark is not")
}

func TestDecodeBounds(t *testing.T) {
	pad := func(size int) []byte {
		short := text(t, "confirm", `"attempt":`, `"pad":"","attempt":`)
		return text(t, "confirm", `"attempt":`, `"pad":"`+strings.Repeat("x", size-len(short))+`","attempt":`)
	}
	_, err := journal.Decode(pad(journal.MaxSize))
	require.NoError(t, err)
	_, err = journal.Decode(pad(journal.MaxSize + 1))
	requireFault(t, err, "event", "has 262145 bytes; at most 262144 are allowed")

	const deep = 60 // beside the event's own
	nested := strings.Repeat(`{"a":[`, deep/2) + strings.Repeat(`]}`, deep/2)
	e, err := journal.Decode(text(t, "confirm", `"attempt":`, `"x":`+nested+`,"attempt":`))
	require.NoError(t, err)
	again, err := e.Encode()
	require.NoError(t, err)
	require.Contains(t, string(again), nested)
}

// A message quotes what was sent, but never at length.
func TestMessagesAreShort(t *testing.T) {
	huge := strings.Repeat("é", 100000)
	for _, c := range []struct{ kind, old, new, field string }{
		{"health", `"fail"`, `"` + huge + `"`, "data.status"},
		{"confirm", `leadership.confirm.v1`, huge, "type"},
		{"confirm", `leadership.confirm.v1`, "leadership." + huge + ".v1", "type"},
		{"confirm", `"1.0"`, `"` + huge + `"`, "specversion"},
		{"confirm", `"candidate":"jm-1"`, `"candidate":"` + huge + `"`, "data.candidate"},
		{"retry", `"1.5s"`, `"` + huge + `"`, "data.after"},
		{"confirm", `"time":"2026-08-01T10:00:00Z"`, `"time":"` + huge + `"`, "time"},
	} {
		_, err := journal.Decode(text(t, c.kind, c.old, c.new))
		requireFault(t, err, c.field, "")
	}
}

// What could be read of a bad event is there, so that a record of it can be told apart.
func TestDecodeReturnsWhatCouldBeRead(t *testing.T) {
	bad := `{"type":"leadership.confirm.v1","data":{"session":7},"subject":"g/c","source":"candidate/a","specversion":"1.0","id":"1","x":2}`
	e, err := journal.Decode([]byte(bad))
	requireFault(t, err, "data.session", "where a string is wanted")
	require.Equal(t, "g", e.Group)
	require.Equal(t, "c", e.Component)
	require.Equal(t, "1", e.ID)
	require.Nil(t, e.Data)
	require.Equal(t, `{"x":2}`, string(e.Extensions))

	e, err = journal.Decode([]byte(strings.Replace(bad, "7", `"s"`, 1)))
	require.ErrorIs(t, err, journal.ErrInvalid)
	require.Equal(t, &journal.Confirm{Session: "s"}, e.Data)
	require.Equal(t, []string{"data.candidate", "data.address", "data.attempt"}, []string{
		faults(err)[0][0], faults(err)[1][0], faults(err)[2][0],
	})
}

func TestDecodeTakesTimesWithAnOffset(t *testing.T) {
	e, err := journal.Decode(text(t, "confirm", "2026-08-01T10:00:00Z", "2026-08-01T12:00:00.5+02:00"))
	require.NoError(t, err)
	require.Equal(t, at(0).Add(500e6), e.Time)
}

func TestDecodeDataRefusesUnknownMembersOnRequest(t *testing.T) {
	for _, c := range []struct{ kind, data, field, hint string }{
		{"confirm", `{"session":"s","adress":"x"}`, "data.adress", `did you mean "address"?`},
		{"confirm", `{"zzzzzzzz":1}`, "data.zzzzzzzz", "is not a member that is known here"},
		{"grant", `{"session":"s","lock":{"kind":"zk","revison":1}}`, "data.lock.revison", `did you mean "revision"?`},
		{"grant", `{"projecter":7}`, "data.projecter", `did you mean "projector"?`},
		{"transfer", `{"acter":"a"}`, "data.acter", `did you mean "actor"?`},
		{"watch", `{"entry":{"sesion":"s"}}`, "data.entry.sesion", `did you mean "session"?`},
		{"ready", `{"ready":true,"sesion":"s"}`, "data.sesion", `did you mean "session"?`},
		{"policy", `{"policy":{},"polic":1}`, "data.polic", `did you mean "policy"?`},
		{"policy", `{"policy":{"confirmwithin":"1s"}}`, "data.policy.confirmwithin", `did you mean "confirmWithin"?`},
		{"policy", `{"policy":{"health":{"perod":"1s"}}}`, "data.policy.health.perod", `did you mean "period"?`},
		{"policy", `{"policy":{"lease":{"\u0064urations":"1s"}}}`, "data.policy.lease.durations", `did you mean "duration"?`},
		{"policy", `{"policy":{},"targets":[{"name":"a"},{"knd":"zk"}]}`, "data.targets[1].knd", `did you mean "kind"?`},
	} {
		_, err := journal.DecodeData(c.kind, []byte(c.data), json.RejectUnknownMembers(true))
		requireFault(t, err, c.field, c.hint)
		_, err = journal.DecodeData(c.kind, []byte(c.data))
		require.NoError(t, err, "else they are kept")
		_, err = journal.DecodeData(c.kind, []byte(c.data), json.RejectUnknownMembers(false))
		require.NoError(t, err)
	}
	every(t, func(t *testing.T, e journal.Event) {
		data, err := json.Marshal(e.Data)
		require.NoError(t, err)
		read, err := journal.DecodeData(e.Data.Kind(), data, json.RejectUnknownMembers(true))
		require.NoError(t, err)
		require.Equal(t, e.Data, read)
	})
}

func TestDecodeData(t *testing.T) {
	_, err := journal.DecodeData("grnt", []byte(`{}`))
	requireFault(t, err, "type", `"grnt" is no kind of event; did you mean "grant"?`)
	_, err = journal.DecodeData("grant", nil)
	requireFault(t, err, "data", "is missing")
	_, err = journal.DecodeData("grant", []byte(`[]`))
	requireFault(t, err, "data", "is an array where an object is wanted")
	_, err = journal.DecodeData("grant", []byte(`{"session":7}`))
	requireFault(t, err, "data.session", "is a number where a string is wanted")
	_, err = journal.DecodeData("grant", []byte(`nothing`))
	requireFault(t, err, "data", "is not JSON")
	data, err := journal.DecodeData("grant", []byte(" \n{\"session\":\"s\"} "))
	require.NoError(t, err)
	require.Equal(t, &journal.Grant{Session: "s"}, data)
}

// A policy event says what differs from the built-in policy.
func TestDecodePolicyFillsInDefaults(t *testing.T) {
	data, err := journal.DecodeData("policy", []byte(`{"policy":{"election":"managed","health":{"maxYields":9},"onErase":"alert"}}`))
	require.NoError(t, err)
	p := data.(*journal.Policy).Policy
	require.NoError(t, p.Validate())
	require.Equal(t, "managed", p.Election)
	require.Equal(t, 9, p.Health.MaxYields)
	require.Equal(t, 3, p.Health.FailureThreshold)
	require.Equal(t, "15s", p.Lease.Duration.String())
	require.Nil(t, data.(*journal.Policy).Targets, "absent: unchanged")
	data, err = journal.DecodeData("policy", []byte(`{"policy":{},"targets":[]}`))
	require.NoError(t, err)
	require.Empty(t, *data.(*journal.Policy).Targets, "empty: none")
}

func TestEncodeNamesWhatJSONCannotHold(t *testing.T) {
	for name, c := range map[string]struct {
		field  string
		change func(*journal.Event)
	}{
		"id":             {"id", func(e *journal.Event) { e.ID = "\xff" }},
		"subject":        {"subject", func(e *journal.Event) { e.Group = "\xff" }},
		"data":           {"data.address", func(e *journal.Event) { e.Data.(*journal.Confirm).Address = "\xc3" }},
		"property":       {"data.properties.a", func(e *journal.Event) { e.Data.(*journal.Confirm).Properties["a"] = "\xff" }},
		"time":           {"time", func(e *journal.Event) { e.Time = e.Time.AddDate(8000, 0, 0) }},
		"known twice":    {"id", func(e *journal.Event) { e.Extensions = []byte(`{"id":"2"}`) }},
		"extension":      {"event", func(e *journal.Event) { e.Extensions = []byte(`[1]`) }},
		"data forgotten": {"data", func(e *journal.Event) { e.Data = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			e := sample("confirm")
			c.change(&e)
			_, err := e.Encode()
			require.ErrorIs(t, err, journal.ErrInvalid)
			var field *journal.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, c.field, field.Field, "%v", err)
		})
	}
}

func TestKindsAreThoseOfTheContract(t *testing.T) {
	want := "join leave grant revoke confirm ready release withdraw retry health watch " +
		"transfer exclude include pause resume policy takeover push yield hold stale alert clear checkpoint"
	require.Equal(t, want, strings.Join(journal.Kinds(), " "))
	for _, kind := range journal.Kinds() {
		text := `{"entry":null,"ready":true,"policy":{}}`
		data, err := journal.DecodeData(kind, []byte(text))
		require.NoError(t, err)
		require.Equal(t, kind, data.Kind())
		require.Equal(t, strings.ToUpper(kind[:1])+kind[1:], strings.TrimPrefix(fmt.Sprintf("%T", data), "*journal."))
	}
}
