package view_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// filled is a view with something in every corner of its state.
func filled(t *testing.T) *view.View {
	f := newFolder(t)
	operator := func(component string, data journal.Data) { f.fold("g", component, "operator/alice", data) }
	projector := func(component string, data journal.Data) {
		require.Equal(t, view.Applied, f.fold("g", component, "projector/p", data).Verdict, "%+v", data)
	}
	basis := func() journal.Decision { return journal.Decision{Projector: 1, Basis: f.v.Group("g").Version} }
	rules := rules()
	rules.OnErase.Patterns = map[string]string{"rest*": policy.Alert}
	projector("", &journal.Policy{
		Policy: rules, Order: order(), Decision: &journal.Decision{Projector: 1},
		Targets: &[]journal.Target{{Name: "cm", Kind: "k8s/configmap", Components: []string{"rest"}}, {Name: "zk", Kind: "zk", Path: "/x"}},
	})
	for _, name := range []string{"jm-1", "jm-2"} {
		f.service("", &journal.Join{
			Candidate: name, Incarnation: "1", Components: []string{"rest"}, Priority: 1, Labels: map[string]string{"b": "2", "a": "1"},
		})
		f.service("", &journal.Health{Candidate: name, Incarnation: "1", Check: "disk", Status: "pass", Run: 1})
	}
	f.service("rest", &journal.Grant{Candidate: "jm-3", Session: "S0", Lock: &journal.Lock{Kind: "lease", Revision: 7}})
	f.service("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	f.service("rest", &journal.Confirm{
		Candidate: "jm-1", Session: "S1", Address: "http://jm-1", Attempt: 1, Properties: map[string]string{"z": "1", "y": "2"},
	})
	f.service("rest", &journal.Ready{Session: "S1", Ready: true, Reason: "runs"})
	intent := f.component("rest").Intent.Sequence
	projector("rest", &journal.Push{Target: "cm", Intent: intent, Attempt: 1, Outcome: journal.OK, Revision: 9, Decision: basis()})
	projector("rest", &journal.Push{
		Target: "zk", Intent: intent, Attempt: 1, Outcome: journal.Failed, Error: "denied", Permanent: true, Decision: basis(),
	})
	f.now = f.now.Add(time.Minute)
	f.fold("g", "rest", "observer/o", &journal.Watch{
		Target: "cm", Revision: 10, Sequence: 3, Holder: "h", Participants: []string{"p"},
		Entry: &journal.LeaderInfo{Session: "S9", Address: "x"},
	})
	f.service("", &journal.Health{Candidate: "jm-1", Incarnation: "1", Check: "disk", Status: "fail", Reason: "full", Run: 2})
	projector("rest", &journal.Hold{Session: "S1", Reason: "rate", Decision: basis()})
	projector("rest", &journal.Alert{Name: "TargetFailing", Reason: "zk: denied", Decision: basis()})
	operator("rest", &journal.Transfer{To: "jm-2", Order: order()})
	projector("rest", &journal.Yield{Session: "S1", To: "jm-2", Reason: "test", Decision: basis()})
	f.service("other", &journal.Grant{Candidate: "jm-2", Session: "S1"})
	f.service("other", &journal.Revoke{Session: "S1", Reason: "lost"})
	f.service("", &journal.Join{Candidate: "jm-2", Incarnation: "2", Components: []string{"rest"}})
	f.service("", &journal.Health{Candidate: "jm-2", Incarnation: "1", Check: "disk", Status: "pass", Run: 5})
	f.service("", &journal.Health{Candidate: "jm-4", Incarnation: "1", Check: "disk", Status: "pass", Run: 5})
	operator("", &journal.Exclude{Candidate: "jm-4", Until: f.now.Add(time.Hour), Order: order()})
	operator("", &journal.Pause{Until: f.now.Add(time.Hour), Order: order()})
	projector("", &journal.Alert{Name: "ObserversSilent", Reason: "test", Decision: basis()})
	return f.v
}

// TestSnapshotIsFrozen holds what stands on disk in snapshots of this version: a change here needs a new one.
func TestSnapshotIsFrozen(t *testing.T) {
	v := filled(t)
	var got bytes.Buffer
	require.NoError(t, v.Snapshot(&got))
	want := golden(t, "testdata/snapshot.json", got.Bytes())
	require.JSONEq(t, string(want), got.String())
	require.Equal(t, string(want), got.String(), "the same, to the byte")
	hash := golden(t, "testdata/snapshot.hash.golden", []byte(v.Hash()))
	require.Equal(t, string(hash), v.Hash(), "the hash stands in checkpoints: it is as frozen as the snapshot")
	again, err := view.Restore(bytes.NewReader(want))
	require.NoError(t, err)
	require.Equal(t, v.Hash(), again.Hash())
	require.Equal(t, v.Sequence(), again.Sequence())
	require.NoError(t, again.CheckDerived())
}

// golden is what a file holds, which -update makes what was got.
func golden(t *testing.T, file string, got []byte) []byte {
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	return want
}

// TestARestoredViewGoesOn holds that a restored view folds and decides as the one it was taken of.
func TestARestoredViewGoesOn(t *testing.T) {
	one := filled(t)
	other := restored(t, one)
	epoch, instance := one.Projector()
	restoredEpoch, restoredInstance := other.Projector()
	require.Equal(t, epoch, restoredEpoch)
	require.Equal(t, instance, restoredInstance)
	require.Equal(t, one.Time(), other.Time())
	for range 20 {
		now := one.Time().Add(time.Hour)
		decided := one.Decide(now, view.Liveness{}, never)
		require.Equal(t, decided, other.Decide(now, view.Liveness{}, never))
		for _, p := range decided {
			for _, e := range p.Events("projector/p", epoch, now) {
				r := stored(t, one.Sequence()+1, now, e)
				require.Equal(t, one.Apply(&r).Verdict, other.Apply(&r).Verdict)
			}
		}
	}
	require.Empty(t, one.Decide(one.Time(), view.Liveness{}, never))
	require.Equal(t, one.Hash(), other.Hash())
}

// TestRestoreRefuses tells what is no snapshot.
func TestRestoreRefuses(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, filled(t).Snapshot(&b))
	whole := b.String()
	for what, c := range map[string]struct{ from, to string }{
		"another version":            {`"version":1,"sequence"`, `"version":2,"sequence"`},
		"a member too many":          {`"version":1,"sequence"`, `"new":1,"version":1,"sequence"`},
		"a number that is a text":    {`"projector":1`, `"projector":"1"`},
		"another group's state":      {`"groups":{"g":`, `"groups":{"h":`},
		"no group":                   {`"groups":{"g":`, `"groups":{"a":null,"g":`},
		"no component":               {`"components":{"other":`, `"components":{"a":null,"other":`},
		"another component's state":  {`"components":{"other":`, `"components":{"another":`},
		"no components":              {`"components":{"other":`, `"components":null,"was":{"other":`},
		"no candidate":               {`"candidates":{"jm-1":`, `"candidates":{"jm-0":null,"jm-1":`},
		"no check":                   {`"checks":{"disk":`, `"checks":{"a":null,"disk":`},
		"no target state":            {`"targets":{"cm":`, `"targets":{"a":null,"cm":`},
		"a policy that is not valid": {`"flapping":5`, `"flapping":-5`},
		"a target that is not valid": {`"name":"zk","kind":"zk"`, `"name":"zk","kind":""`},
		"a time that is none":        {`"since":"2026-01-01T`, `"since":"2026-01-91T`},
		"a time beyond all others":   {`"time":"2026-01-01T00:01:00Z"`, `"time":"9999-12-31T23:59:00-01:00"`},
		"text after its end":         {whole, whole + "{}"},
		"nothing":                    {whole, ""},
		"half of it":                 {whole, whole[:len(whole)/2]},
	} {
		t.Run(what, func(t *testing.T) {
			require.Contains(t, whole, c.from)
			_, err := view.Restore(strings.NewReader(strings.Replace(whole, c.from, c.to, 1)))
			require.ErrorContains(t, err, "read a snapshot of the view")
		})
	}
}

// full takes no more.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestSnapshotTellsWhatFails(t *testing.T) {
	err := filled(t).Snapshot(full{})
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, "write a snapshot of the view at ")
}

// FuzzRestore holds that no bytes whatever make Restore, or the view that it gives, panic.
func FuzzRestore(f *testing.F) {
	golden, err := os.ReadFile("testdata/snapshot.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte(`{"version":1,"sequence":1,"time":"2026-01-01T00:00:00Z","projector":1,"instance":"p","groups":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := view.Restore(bytes.NewReader(text))
		if err != nil {
			return
		}
		again := restored(t, v)
		require.Equal(t, v.Hash(), again.Hash())
		decideAll(t, v)
		goOn(t, v)
		require.NoError(t, v.CheckDerived())
	})
}

func decideAll(t *testing.T, v *view.View) {
	for _, p := range v.Decide(v.Time().Add(time.Hour), view.Liveness{}, never) {
		require.NotEmpty(t, p.Events("projector/p", 1, v.Time()))
	}
}

// goOn has every group and component of a view see one event of each kind.
func goOn(t *testing.T, v *view.View) {
	var all []journal.Event
	for name, g := range v.Groups() {
		all = append(all, journal.Event{Group: name, Data: &journal.Join{Candidate: "k", Incarnation: "9", Components: []string{"rest"}}})
		for component := range g.Components {
			all = append(all, ofEachKind(name, component)...)
		}
	}
	for i := range all {
		e := &all[i]
		e.ID, e.Source, e.Time = "fuzz", "operator/fuzz", v.Time()
		e.ID += strings.Repeat("x", i%100)
		v.Apply(&journal.Record{Sequence: v.Sequence() + 1, Time: v.Time(), Event: *e})
	}
	decideAll(t, v)
}

func ofEachKind(group, component string) []journal.Event {
	epoch := journal.Decision{Projector: 1}
	about := []journal.Data{
		&journal.Grant{Candidate: "k", Session: "S1"}, &journal.Confirm{Candidate: "k", Session: "S1", Address: "a", Attempt: 1},
		&journal.Push{Target: "cm", Intent: 1, Attempt: 1, Outcome: journal.OK, Decision: epoch},
		&journal.Watch{Target: "cm", Revision: 1 << 40}, &journal.Watch{Target: "cm", Gap: true},
		&journal.Transfer{To: "k", Force: true, Order: order()}, &journal.Release{Session: "S1", Reason: "test"},
		&journal.Grant{Candidate: "l", Session: "S2"}, &journal.Revoke{Session: "S1", Reason: "test"},
		&journal.Withdraw{Reason: "test"}, &journal.Revoke{Session: "S2", Reason: "test"},
	}
	all := make([]journal.Event, 0, len(about)+3)
	for _, data := range about {
		all = append(all, journal.Event{Group: group, Component: component, Data: data})
	}
	for _, data := range []journal.Data{
		&journal.Health{Candidate: "k", Incarnation: "9", Check: "disk", Status: "fail", Run: 1 << 40},
		&journal.Leave{Candidate: "k", Incarnation: "9"}, &journal.Policy{Policy: rules(), Order: order()},
	} {
		all = append(all, journal.Event{Group: group, Data: data})
	}
	return all
}

// TestRestoreOfADamagedState replaces any value of a snapshot by any other: it is refused, or gives a view that works.
func TestRestoreOfADamagedState(t *testing.T) {
	whole, err := os.ReadFile("testdata/snapshot.json")
	require.NoError(t, err)
	values := []string{"null", "-1", "0", "99999999999", `""`, `"x"`, `"2026-01-01T00:00:00Z"`, "true", "[]", "[null]", "{}", `{"x":null}`}
	rapid.Check(t, func(r *rapid.T) {
		var state any
		require.NoError(r, json.Unmarshal(whole, &state))
		for range rapid.IntRange(1, 3).Draw(r, "damages") {
			var value any
			require.NoError(r, json.Unmarshal([]byte(rapid.SampledFrom(values).Draw(r, "value")), &value))
			damage(r, state, value)
		}
		text, err := json.Marshal(state)
		require.NoError(r, err)
		v, err := view.Restore(bytes.NewReader(text))
		if err != nil {
			return
		}
		require.Equal(r, v.Hash(), restored(r, v).Hash())
		decideAll(t, v)
		goOn(t, v)
		require.NoError(r, v.CheckDerived())
	})
}

// damage replaces one value somewhere below a node.
func damage(t *rapid.T, node, value any) {
	for depth := 0; ; depth++ {
		var next any
		var put func(any)
		switch n := node.(type) {
		case map[string]any:
			if len(n) == 0 {
				return
			}
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(n))).Draw(t, "member")
			next, put = n[key], func(v any) { n[key] = v }
		case []any:
			if len(n) == 0 {
				return
			}
			i := rapid.IntRange(0, len(n)-1).Draw(t, "element")
			next, put = n[i], func(v any) { n[i] = v }
		default:
			return
		}
		_, isMap := next.(map[string]any)
		_, isList := next.([]any)
		if !isMap && !isList || depth > 1 && rapid.IntRange(0, 3).Draw(t, "here") == 0 {
			put(value)
			return
		}
		node = next
	}
}
