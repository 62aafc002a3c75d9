package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// folder folds events that a test makes one after the other.
type folder struct {
	t        *testing.T
	v        *view.View
	now      time.Time
	sequence uint64
}

func newFolder(t *testing.T) *folder {
	f := &folder{t: t, v: view.New(), now: epoch}
	f.fold("_", "", "projector/p", &journal.Takeover{Instance: "p"})
	return f
}

func (f *folder) fold(group, component, source string, data journal.Data) view.Result {
	f.sequence++
	r := stored(f.t, f.sequence, f.now, journal.Event{
		ID: fmt.Sprintf("id-%d", f.sequence), Source: source, Group: group, Component: component, Time: f.now, Data: data,
	})
	return f.v.Apply(&r)
}

func (f *folder) service(component string, data journal.Data) view.Result {
	return f.fold("g", component, "candidate/k", data)
}

func (f *folder) component(name string) *view.Component { return f.v.Group("g").Components[name] }

// TestMemoryIsBounded tells which events a hostile or broken service could send for ever, and what is kept of them.
func TestMemoryIsBounded(t *testing.T) {
	const many = 1100
	name := func(i int) string { return fmt.Sprintf("x-%d", i) }
	for what, c := range map[string]struct {
		send func(f *folder, i int)
		kept func(f *folder) int
		most int
	}{
		"sessions that are revoked and were never granted": {
			func(f *folder, i int) { f.service("rest", &journal.Revoke{Session: name(i), Reason: "lost"}) },
			func(f *folder) int { return len(f.component("rest").Sessions) }, 256,
		},
		"terms that supersede each other": {
			func(f *folder, i int) { f.service("rest", &journal.Grant{Candidate: name(i), Session: name(i)}) },
			func(f *folder) int {
				c := f.component("rest")
				return max(len(c.Terms), len(c.Anomalies), len(c.Handover.Stopping), len(c.Handover.Overlaps), len(c.Sessions))
			}, 256,
		},
		"kinds of lock": {
			func(f *folder, i int) {
				lock := &journal.Lock{Kind: name(i), Revision: 1}
				f.service("rest", &journal.Grant{Candidate: "k", Session: "S1", Lock: lock})
			},
			func(f *folder) int { return len(f.component("rest").Locks) }, 8,
		},
		"strangers who confirm": {
			func(f *folder, i int) {
				f.service("rest", &journal.Grant{Candidate: "k", Session: "S1"})
				f.service("rest", &journal.Confirm{Candidate: name(i), Session: "S1", Address: "a", Attempt: 1})
			},
			func(f *folder) int { return len(f.component("rest").Term.Attempts) }, 8,
		},
		"late confirmations": {
			func(f *folder, i int) {
				f.service("rest", &journal.Grant{Candidate: "k", Session: "S1"})
				f.service("rest", &journal.Revoke{Session: "S1", Reason: "lost"})
				f.service("rest", &journal.Confirm{Candidate: "k", Session: "S1", Address: "a", Attempt: uint64(i + 1)})
			},
			func(f *folder) int { return len(f.component("rest").Anomalies) }, 32,
		},
		"components that nothing is known of": {
			func(f *folder, i int) {
				f.service(name(i), &journal.Ready{Session: "S1", Ready: true})
				f.service(name(i), &journal.Confirm{Candidate: "k", Session: "S1", Address: "a", Attempt: 1})
				f.fold("g", name(i), "observer/o", &journal.Watch{Target: "cm", Revision: 1})
			},
			func(f *folder) int { return len(f.v.Group("g").Components) }, 0,
		},
		"candidates that never join": {
			func(f *folder, i int) {
				f.service("", &journal.Health{Candidate: name(i), Incarnation: "1", Check: "disk", Status: "pass", Run: 1})
			},
			func(f *folder) int { return len(f.v.Group("g").Candidates) }, 1024,
		},
		"candidates that join and leave": {
			func(f *folder, i int) {
				f.service("", &journal.Join{Candidate: name(i), Incarnation: "1", Components: []string{"rest"}})
				f.service("", &journal.Leave{Candidate: name(i), Incarnation: "1"})
			},
			func(f *folder) int { return len(f.v.Group("g").Candidates) }, 1024,
		},
		"health checks": {
			func(f *folder, i int) {
				f.service("", &journal.Health{Candidate: "k", Incarnation: "1", Check: name(i), Status: "pass", Run: 1})
			},
			func(f *folder) int { return len(f.v.Group("g").Candidates["k"].Early[0].Checks) }, 64,
		},
		"incarnations": {
			func(f *folder, i int) {
				f.service("", &journal.Join{Candidate: "k", Incarnation: name(i), Components: []string{"rest"}})
				f.service("", &journal.Health{Candidate: "k", Incarnation: "early" + name(i), Check: "disk", Status: "pass", Run: 1})
			},
			func(f *folder) int {
				k := f.v.Group("g").Candidates["k"]
				return max(len(k.Replaced), len(k.Early), len(f.v.Group("g").Recent))
			}, 64,
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFolder(t)
			for i := range many {
				c.send(f, i)
			}
			require.Equal(t, c.most, c.kept(f))
			require.NoError(t, f.v.CheckDerived())
			require.Equal(t, f.v.Hash(), restored(t, f.v).Hash())
		})
	}
}

// TestTimersAreBounded holds that whoever is looked at again and again waits once.
func TestTimersAreBounded(t *testing.T) {
	f := newFolder(t)
	f.fold("g", "", "operator/alice", &journal.Exclude{Candidate: "k", Until: f.now.AddDate(1, 0, 0), Order: order()})
	for i := range 500 {
		f.now = f.now.Add(time.Second)
		f.service("rest", &journal.Grant{Candidate: "k", Session: fmt.Sprintf("S%d", i)})
		f.fold("g", "", "operator/alice", &journal.Exclude{Candidate: "k", Until: f.now.AddDate(1, 0, 0), Order: order()})
		f.v.Decide(f.now, view.Liveness{}, never)
		require.LessOrEqual(t, f.v.Timers(), 2)
	}
}

// TestWhoIsRemembered holds that candidates who lead, are excluded or take part are never forgotten for strangers.
func TestWhoIsRemembered(t *testing.T) {
	f := newFolder(t)
	f.service("", &journal.Join{Candidate: "part", Incarnation: "1", Components: []string{"rest"}})
	f.service("", &journal.Join{Candidate: "leader", Incarnation: "1", Components: []string{"rest"}})
	f.service("rest", &journal.Grant{Candidate: "leader", Session: "S1"})
	f.service("", &journal.Leave{Candidate: "leader", Incarnation: "1"})
	f.fold("g", "", "operator/alice", &journal.Exclude{Candidate: "excluded", Order: order()})
	for i := range 1100 {
		f.service("", &journal.Health{Candidate: fmt.Sprintf("x-%d", i), Incarnation: "1", Check: "disk", Status: "pass", Run: 1})
	}
	all := f.v.Group("g").Candidates
	require.Contains(t, all, "part")
	require.Contains(t, all, "leader")
	require.Contains(t, all, "excluded")
	require.Contains(t, all, "x-1099")
	require.NotContains(t, all, "x-0")
	require.Len(t, all, 1024+1)
}

// TestCostIsOfWhatIsConcerned holds that a report touches the components that the candidate leads or may lead, and none
// of the many others.
func TestCostIsOfWhatIsConcerned(t *testing.T) {
	f := newFolder(t)
	for i := range 300 {
		f.service(fmt.Sprintf("c-%d", i), &journal.Grant{Candidate: "other", Session: "S1"})
	}
	f.service("led", &journal.Grant{Candidate: "k", Session: "S1"})
	f.service("", &journal.Join{Candidate: "k", Incarnation: "1", Components: []string{"may"}})
	health := func(run uint64, status string) []string {
		f.v.Decide(f.now, view.Liveness{}, never)
		require.Empty(t, f.v.Touched())
		f.service("", &journal.Health{Candidate: "k", Incarnation: "1", Check: "disk", Status: status, Run: run})
		return f.v.Touched()
	}
	require.Equal(t, []string{"g/led", "g/may"}, health(1, "pass"))
	require.Empty(t, health(2, "pass"), "nothing that decisions read has changed")
	require.Equal(t, []string{"g/led", "g/may"}, health(3, "fail"))
	require.Empty(t, health(4, "fail"))
	require.Equal(t, []string{"g/led", "g/may"}, health(5, "fail"), "now it counts as failing")
}
