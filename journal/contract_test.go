package journal_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

// members are what the contract says of the members of a kind: those that must be there, and those that need not.
type members struct{ required, optional string }

// contract is the table of kinds, as the contract has it. A basis may be 0, and a decision may have no cause in the
// journal; a watch of what never was has no revision; a retry at once has no wait.
func contract() map[string]members {
	return map[string]members{
		"join":       {"candidate incarnation components", "address priority labels"},
		"leave":      {"candidate incarnation", "reason"},
		"grant":      {"candidate session projector", "lock basis cause"},
		"revoke":     {"session reason projector", "candidate basis cause"},
		"confirm":    {"session candidate address attempt", "properties"},
		"ready":      {"session ready", "reason"},
		"release":    {"session reason", ""},
		"withdraw":   {"session reason", "actor"},
		"retry":      {"session attempt error", "after"},
		"health":     {"candidate incarnation check status run", "reason"},
		"watch":      {"target entry", "revision sequence holder participants gap"},
		"transfer":   {"actor reason", "to force"},
		"exclude":    {"candidate actor reason", "until"},
		"include":    {"candidate actor reason projector", "basis cause"},
		"pause":      {"actor reason", "until"},
		"resume":     {"actor reason projector", "basis cause"},
		"policy":     {"policy actor reason projector", "targets basis cause"},
		"takeover":   {"instance", ""},
		"push":       {"target intent attempt outcome projector", "revision error permanent retryAfter basis cause"},
		"yield":      {"session reason projector", "to basis cause"},
		"hold":       {"session reason projector", "basis cause"},
		"stale":      {"candidate incarnation since projector", "basis cause"},
		"alert":      {"name reason projector", "basis cause"},
		"clear":      {"name reason projector", "basis cause"},
		"checkpoint": {"sequence viewHash treeSize rootHash", ""},
	}
}

// tree is the sample of a kind as JSON values; a watch without its gap, since a bare gap need not say more.
func tree(t *testing.T, kind string) (event, data map[string]any) {
	t.Helper()
	e := sample(kind)
	if w, ok := e.Data.(*journal.Watch); ok {
		w.Gap = false
	}
	text, err := e.Encode()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &event))
	return event, event["data"].(map[string]any)
}

func decode(t *testing.T, event map[string]any) (journal.Event, error) {
	t.Helper()
	text, err := json.Marshal(event, json.Deterministic(true))
	require.NoError(t, err)
	return journal.Decode(text)
}

func TestContractIsWhole(t *testing.T) {
	require.ElementsMatch(t, journal.Kinds(), slices.Collect(maps.Keys(contract())))
	for kind, m := range contract() {
		_, data := tree(t, kind)
		if kind == "watch" {
			data["gap"] = true
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(data)), strings.Fields(m.required+" "+m.optional), kind)
	}
}

// Every required member that is left out, null or empty is named; every optional one may be left out.
func TestContractMembers(t *testing.T) {
	for kind, m := range contract() {
		for _, name := range strings.Fields(m.required) {
			for what, take := range map[string]func(map[string]any){
				"left out": func(data map[string]any) { delete(data, name) },
				"null":     func(data map[string]any) { data[name] = nil },
			} {
				t.Run(kind+" without "+name+": "+what, func(t *testing.T) {
					event, data := tree(t, kind)
					take(data)
					_, err := decode(t, event)
					if name == "entry" && what == "null" {
						require.NoError(t, err, "nothing is there")
						return
					}
					requireFirstFault(t, err, "data."+name)
				})
			}
		}
		for _, name := range strings.Fields(m.optional) {
			t.Run(kind+" without "+name, func(t *testing.T) {
				event, data := tree(t, kind)
				delete(data, name)
				_, err := decode(t, event)
				require.NoError(t, err)
				data[name] = nil
				_, err = decode(t, event)
				require.NoError(t, err, "null says nothing")
			})
		}
	}
}

func requireFirstFault(t *testing.T, err error, field string) {
	t.Helper()
	require.ErrorIs(t, err, journal.ErrInvalid)
	all := faults(err)
	require.NotEmpty(t, all)
	require.Equal(t, field, all[0][0], "%v", err)
}

// Every attribute of the envelope but the time is required.
func TestContractAttributes(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		for _, name := range []string{"specversion", "id", "source", "type", "subject", "data"} {
			event, _ := tree(t, e.Data.Kind())
			delete(event, name)
			_, err := decode(t, event)
			requireFirstFault(t, err, name)
		}
		event, _ := tree(t, e.Data.Kind())
		delete(event, "time")
		_, err := decode(t, event)
		require.NoError(t, err)
	})
}

// place is a value somewhere in an event, with what sets it.
type place struct {
	path  string
	value any
	set   func(any)
}

// places are all values of an event but for the whole, outermost first.
func places(at string, value any) []place {
	var all []place
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			path := strings.TrimPrefix(at+"."+name, ".")
			all = append(all, place{path, v[name], func(x any) { v[name] = x }})
			all = append(all, places(path, v[name])...)
		}
	case []any:
		for i := range v {
			path := at + "[" + strconv.Itoa(i) + "]"
			all = append(all, place{path, v[i], func(x any) { v[i] = x }})
			all = append(all, places(path, v[i])...)
		}
	}
	return all
}

// Whatever value of an event is replaced by one of another type, the error names it.
func TestEveryMemberIsNamedWhenItsTypeIsWrong(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		event, _ := tree(t, e.Data.Kind())
		for _, p := range places("", event) {
			for _, wrong := range []any{"text", 7.5, true, []any{[]any{}}, map[string]any{"a": map[string]any{}}} {
				if sameType(p.value, wrong) || strings.HasPrefix(p.path, "data.policy.onErase") {
					continue
				}
				p.set(wrong)
				_, err := decode(t, event)
				p.set(p.value)
				requireFirstFault(t, err, p.path)
			}
		}
		_, err := decode(t, event)
		require.NoError(t, err, "everything is back in its place")
	})
}

func sameType(a, b any) bool {
	switch a.(type) {
	case string:
		_, ok := b.(string)
		return ok
	case bool:
		_, ok := b.(bool)
		return ok
	case map[string]any:
		_, ok := b.(map[string]any)
		return ok
	case []any:
		_, ok := b.([]any)
		return ok
	}
	return false // a number: 7.5 is no whole one
}

// Both forms of onErase are read; the error for what is neither names the member, or the one around it.
func TestWrongTypesInOnErase(t *testing.T) {
	for _, wrong := range []any{7.5, true, []any{}, map[string]any{"*": 7.5}, map[string]any{"*": []any{}}} {
		event, data := tree(t, "policy")
		data["policy"].(map[string]any)["onErase"] = wrong
		_, err := decode(t, event)
		requireFirstFault(t, err, "data.policy.onErase")
		require.ErrorContains(t, err, `onErase is "restore", "alert" or a map`)
	}
}

// In every object of an event a member that v1 does not know is kept; asked to be strict, the decoder names it.
func TestEveryObjectKeepsOrRefusesUnknownMembers(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		kind := e.Data.Kind()
		event, data := tree(t, kind)
		objects := append([]place{{path: "data", value: data}}, places("data", data)...)
		for _, p := range objects {
			object, ok := p.value.(map[string]any)
			if !ok || slices.Contains([]string{"properties", "labels", "onErase"}, p.path[strings.LastIndex(p.path, ".")+1:]) {
				continue
			}
			object["zzzzzzzzzzzzzzzz"] = map[string]any{"deep": []any{"kept", nil}}
			read, err := decode(t, event)
			require.NoError(t, err, p.path)
			text, err := read.Encode()
			require.NoError(t, err)
			var again map[string]any
			require.NoError(t, json.Unmarshal(text, &again))
			require.Equal(t, event, again)

			written, err := json.Marshal(data)
			require.NoError(t, err)
			_, err = journal.DecodeData(kind, written, json.RejectUnknownMembers(true))
			requireFault(t, err, p.path+".zzzzzzzzzzzzzzzz", "is not a member that is known here")
			delete(object, "zzzzzzzzzzzzzzzz")
		}
	})
}

// Extension attributes, of CloudEvents or of whoever, pass through.
func TestExtensionsAreKept(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		const extensions = `{"datacontenttype":"application/json","traceparent":"00-0af7-b7ad-01","x":{"y":[1,2]}}`
		e.Extensions = []byte(extensions)
		require.NoError(t, e.Validate())
		text, err := e.Encode()
		require.NoError(t, err)
		read, err := journal.Decode(text)
		require.NoError(t, err)
		require.Equal(t, extensions, string(read.Extensions))
		require.Equal(t, e, read)
	})
}

// What was kept of a policy's targets goes with their places, for as long as there are so many.
func TestUnknownMembersOfTargetsFollowTheirPlace(t *testing.T) {
	data, err := journal.DecodeData("policy", []byte(`{"policy":{},"targets":[{"name":"a","kind":"zk","x":1},{"name":"b","kind":"zk"}]}`))
	require.NoError(t, err)
	p := data.(*journal.Policy)
	targets := func() string {
		text, err := json.Marshal(p)
		require.NoError(t, err)
		var w struct{ Targets []map[string]any }
		require.NoError(t, json.Unmarshal(text, &w, json.MatchCaseInsensitiveNames(true)))
		again, err := json.Marshal(w.Targets, json.Deterministic(true))
		require.NoError(t, err)
		return string(again)
	}
	require.Equal(t, `[{"kind":"zk","name":"a","x":1},{"kind":"zk","name":"b"}]`, targets())
	*p.Targets = append(*p.Targets, journal.Target{Name: "c", Kind: "zk"})
	require.Equal(t, `[{"kind":"zk","name":"a","x":1},{"kind":"zk","name":"b"},{"kind":"zk","name":"c"}]`, targets())
	*p.Targets = (*p.Targets)[:0]
	require.Equal(t, `[]`, targets())
}

// The same event gives the same bytes, however Go orders its maps.
func TestEncodeIsDeterministic(t *testing.T) {
	e := sample("confirm")
	c := e.Data.(*journal.Confirm)
	for i := range 50 {
		c.Properties[strconv.Itoa(i)] = strconv.Itoa(i)
	}
	want, err := e.Encode()
	require.NoError(t, err)
	for range 20 {
		other := *c
		other.Properties = maps.Clone(c.Properties)
		e.Data = &other
		got, err := e.Encode()
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}
