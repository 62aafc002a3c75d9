package journal_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

const (
	letters       = "ABCXYZabcxyz0189_-"
	groupAlphabet = letters + "."
	compAlphabet  = groupAlphabet + ":/%"
)

func named(alphabet string) *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), 1, 128, -1).Filter(func(s string) bool {
		return s != "." && s != ".." && s != "_"
	})
}

func printed() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune(" !\"#$%&'*+,./09:;<=>?@AZ[\\]^_`az{|}~")), 1, 128, -1).Filter(func(s string) bool {
		return s != "." && s != ".." && s != "_"
	})
}

func free(low int) *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune("az09 \"\\/\n\t<>&é☃\u2028𝄞")), low, 64, -1)
}

func counted() *rapid.Generator[uint64] { return rapid.Uint64Range(1, 1<<53-1) }

func moments() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(1, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
	})
}

func properties() *rapid.Generator[map[string]string] {
	return rapid.Custom(func(t *rapid.T) map[string]string {
		m := rapid.MapOfN(free(0), free(0), 0, 5).Draw(t, "properties")
		if len(m) == 0 {
			return nil // as decoding gives it
		}
		return m
	})
}

// drawn fills a sample of the kind with drawn values, or leaves out what may be left out.
func drawn(t *rapid.T, kind string) journal.Event {
	e := sample(kind)
	draw := func(what string, p *string, g *rapid.Generator[string]) { *p = g.Draw(t, what) }
	maybe := func(what string, p *string, g *rapid.Generator[string]) {
		if *p = ""; rapid.Bool().Draw(t, "has "+what) {
			draw(what, p, g)
		}
	}
	draw("id", &e.ID, printed())
	if e.Group != "_" {
		draw("group", &e.Group, named(groupAlphabet))
	}
	if e.Component != "" {
		draw("component", &e.Component, named(compAlphabet))
	}
	if e.Time = (time.Time{}); rapid.Bool().Draw(t, "has time") {
		e.Time = moments().Draw(t, "time")
	}
	switch d := e.Data.(type) {
	case *journal.Join:
		draw("candidate", &d.Candidate, printed())
		d.Components = rapid.SliceOfN(named(compAlphabet), 1, 4).Draw(t, "components")
		maybe("address", &d.Address, free(1))
		d.Priority = int(rapid.Int64Range(-1<<53+1, 1<<53-1).Draw(t, "priority"))
		d.Labels = properties().Draw(t, "labels")
	case *journal.Confirm:
		draw("candidate", &d.Candidate, printed())
		draw("address", &d.Address, free(1))
		d.Properties, d.Attempt = properties().Draw(t, "properties"), counted().Draw(t, "attempt")
	case *journal.Ready:
		d.Ready = rapid.Bool().Draw(t, "ready")
		maybe("reason", &d.Reason, free(1))
	case *journal.Retry:
		draw("error", &d.Error, free(1))
		d.After = policy.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "after"))
	case *journal.Watch:
		maybe("holder", &d.Holder, free(1))
		d.Revision, d.Sequence = rapid.Uint64Range(0, 1<<53-1).Draw(t, "revision"), counted().Draw(t, "sequence")
		d.Participants = rapid.SliceOfN(free(0), 1, 3).Draw(t, "participants")
		if rapid.Bool().Draw(t, "gone") {
			d.Entry = nil
		} else {
			draw("address", &d.Entry.Address, free(0))
			d.Entry.Properties = properties().Draw(t, "properties")
		}
	case *journal.Exclude:
		d.Until = moments().Draw(t, "until")
		draw("actor", &d.Actor, rapid.StringOfN(rapid.RuneFrom([]rune("azé ")), 1, 128, -1))
	case *journal.Grant:
		d.Lock.Revision = rapid.Uint64Range(0, 1<<53-1).Draw(t, "revision")
		if rapid.Bool().Draw(t, "bare") {
			d.Lock, d.Decision, e.Source = nil, nil, "candidate/jm-1"
		}
	case *journal.Push:
		d.Outcome = rapid.SampledFrom([]string{journal.OK, journal.Superseded, journal.Failed, journal.Unknown}).Draw(t, "outcome")
		d.Intent, d.Basis = counted().Draw(t, "intent"), rapid.Uint64Range(0, 1<<53-1).Draw(t, "basis")
		d.Cause = rapid.SliceOfN(counted(), 1, 5).Draw(t, "cause")
	case *journal.Policy:
		d.Policy.Health.Window = policy.Duration(rapid.Int64Range(1, 1<<62).Draw(t, "window"))
		d.Policy.OnErase.Default = rapid.SampledFrom([]string{policy.Restore, policy.Alert}).Draw(t, "default")
		if rapid.Bool().Draw(t, "unchanged targets") {
			d.Targets = nil
		}
	}
	return e
}

func kinds() *rapid.Generator[string] { return rapid.SampledFrom(journal.Kinds()) }

// What is valid reads back as what it was, and is written as it was.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawn(t, kinds().Draw(t, "kind"))
		require.NoError(t, e.Validate())
		text, err := e.Encode()
		require.NoError(t, err)
		read, err := journal.Decode(text)
		require.NoError(t, err)
		require.Equal(t, e, read)
		again, err := read.Encode()
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		requireSameIfSpaced(t, text)
	})
}

// requireSameIfSpaced fails where a text means another thing than with a space before it: what is written as Encode
// writes it is read in another way than everything else.
func requireSameIfSpaced(t require.TestingT, text []byte) {
	if len(text) == journal.MaxSize {
		return
	}
	e, err := journal.Decode(text)
	spaced, errSpaced := journal.Decode(append([]byte(" "), text...))
	require.Equal(t, spaced, e)
	require.Equal(t, errSpaced == nil, err == nil, "%v / %v", errSpaced, err)
}

// Nearly canonical texts, valid and not, mean what they mean in any other form.
func TestNearlyCanonical(t *testing.T) {
	e := sample("confirm")
	valid, err := e.Encode()
	require.NoError(t, err)
	for _, c := range [][2]string{
		{`"id":"`, `"id":"\u0041`}, {`"id":"`, `"id":"é`}, {`"id":"`, "\"id\":\"\xff"}, {`"id":"`, "\"id\":\"\n"}, {`"id":"`, `"id":""`},
		{`"source"`, ` "source"`}, {`"source"`, `"sourcE"`}, {`.v1"`, `.v2"`}, {`.v1"`, `"`}, {`.confirm.`, `.confirmed.`}, {`.confirm.`, `.`},
		{`flink-1/`, `flink-1`}, {`/restserver`, `/`}, {`/restserver`, `/a/b`}, {`/restserver`, ``}, {`flink-1/restserver`, ``},
		{`10:00:00Z`, `10:00:00+02:00`}, {`10:00:00Z`, `10:00:00.123456789Z`}, {`10:00:00Z`, `10:00:00,5Z`}, {`10:00:00Z`, `10:00Z`},
		{`10:00:00Z`, `24:00:00Z`}, {`10:00:00Z`, `1:00:00Z`}, {`T10`, `t10`}, {`10:00:00Z`, `10:00:00+24:00`}, {`2026-08-01T10:00:00Z`, ``},
		{`"time":"2026-08-01T10:00:00Z",`, ``}, {`"time":"2026-08-01T10:00:00Z"`, `"time":null`}, {`2026`, `0000`}, {`2026`, `9999`},
		{`"data":{`, `"data":{ `}, {`"data":{`, `"data": {`}, {`"data":{`, `"x":1,"data":{`}, {`"data":{`, `"data":null,"x":{`},
		{`}}`, `}} `}, {`}}`, `}`}, {`}}`, `}}}`}, {`}}`, `},"x":1}`}, {`}}`, `},"id":"2"}`}, {`}}`, `},}`}, {`}}`, `}{}`}, {`}}`, ``},
		{`"attempt":`, `"attempt":-`}, {`"attempt":`, `"x":{"y":"}"},"attempt":`}, {`"session"`, `"session":"","session"`},
	} {
		require.Contains(t, string(valid), c[0])
		requireSameIfSpaced(t, []byte(strings.Replace(string(valid), c[0], c[1], 1)))
	}
	for n := range valid {
		requireSameIfSpaced(t, valid[:n])
	}
}

// grow puts members that v1 does not know into every object, at any depth, but for those whose names are the user's.
func grow(t *rapid.T, value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			grow(t, element)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "properties" && name != "labels" && name != "onErase" {
				grow(t, v[name])
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "unknown members") {
			name := fmt.Sprintf("%s-%d", free(0).Draw(t, "name"), i)
			v[name] = rapid.SampledFrom([]any{
				nil, false, "", "\u2028\"\\", 0.5, -1e300, []any{}, []any{1.0, nil, map[string]any{"session": 7.0}},
				map[string]any{}, map[string]any{"a": map[string]any{"b": "c"}},
			}).Draw(t, "value")
		}
	}
}

// What a later version of the contract adds is kept, wherever it stands, through any number of readers.
func TestRoundTripKeepsUnknownMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawn(t, kinds().Draw(t, "kind"))
		text, err := e.Encode()
		require.NoError(t, err)
		var tree any
		require.NoError(t, json.Unmarshal(text, &tree))
		grow(t, tree)
		grown, err := json.Marshal(tree, json.Deterministic(rapid.Bool().Draw(t, "sorted")))
		require.NoError(t, err)

		read, err := journal.Decode(grown)
		require.NoError(t, err)
		once, err := read.Encode()
		require.NoError(t, err)
		var kept any
		require.NoError(t, json.Unmarshal(once, &kept))
		require.Equal(t, tree, kept)

		read, err = journal.Decode(once)
		require.NoError(t, err)
		twice, err := read.Encode()
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

// Unknown values are kept to the digit, even those that no Go number holds.
func TestUnknownNumbersAreKeptAsWritten(t *testing.T) {
	const members = `"big":123456789012345678901234567890,"huge":1e400,"exact":1.50,"minus":-0`
	text := `{"specversion":"1.0","id":"1","source":"candidate/a","type":"leadership.release.v1","subject":"g/c",` +
		`"data":{"session":"s","reason":"r",` + members + `},` + members + `}`
	e, err := journal.Decode([]byte(text))
	require.NoError(t, err)
	require.Equal(t, "{"+members+"}", string(e.Extensions))
	again, err := e.Encode()
	require.NoError(t, err)
	require.Equal(t, text, string(again))
}

// Members may come in any order: an event whose type stands last reads the same.
func TestOrderOfMembersDoesNotMatter(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		text, err := e.Encode()
		require.NoError(t, err)
		var tree map[string]any
		require.NoError(t, json.Unmarshal(text, &tree))
		for _, last := range []string{"type", "data", "id", "subject", "specversion"} {
			member, err := json.Marshal(tree[last], json.Deterministic(true))
			require.NoError(t, err)
			rest := map[string]any{}
			for name, v := range tree {
				if name != last {
					rest[name] = v
				}
			}
			others, err := json.Marshal(rest, json.Deterministic(true))
			require.NoError(t, err)
			turned := string(others[:len(others)-1]) + "," + strconv.Quote(last) + ":" + string(member) + "}"
			read, err := journal.Decode([]byte(turned))
			require.NoError(t, err)
			require.Equal(t, e, read)
		}
	})
}
