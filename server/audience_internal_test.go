package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/standing"
)

// town is a view with a hub, and records at random of few names, so that they meet.
type town struct {
	t    *rapid.T
	v    *view.View
	hub  *hub
	runs uint64
}

func (w *town) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(w.t, label)
}

func (w *town) candidate() string { return w.pick("candidate", "a", "b", "c", "d") }

func (w *town) session() string { return w.pick("session", "S1", "S2", "S3", "S4", "S5", "S6") }

// tell folds an event, as the projector does.
func (w *town) tell(group, component string, data journal.Data) {
	n := w.v.Sequence() + 1
	r := journal.Record{Sequence: n, Time: time.Unix(int64(n), 0).UTC(), Event: journal.Event{
		ID: fmt.Sprint(n), Source: journal.SourceOf(data), Group: group, Component: component, Data: data,
	}}
	w.hub.folded(&r, w.v.Apply(&r))
}

func (w *town) step() {
	group, component := w.pick("group", "g", "g", "g", "other"), w.pick("component", "x", "y")
	if rapid.IntRange(0, 2).Draw(w.t, "whole group") == 0 {
		w.tell(group, "", w.ofGroup())
		return
	}
	w.tell(group, component, w.ofComponent(group))
}

func (w *town) ofGroup() journal.Data {
	w.runs++
	name, incarnation := w.candidate(), w.pick("incarnation", "1", "2")
	decision := journal.Decision{Basis: w.version("g")}
	decision.Projector, _ = w.v.Projector()
	return rapid.SampledFrom([]journal.Data{
		&journal.Join{Candidate: name, Incarnation: incarnation, Components: []string{"x", "y"}},
		&journal.Leave{Candidate: name, Incarnation: incarnation, Reason: "shutdown"},
		&journal.Health{Candidate: name, Incarnation: incarnation, Check: "disk", Run: w.runs, Status: w.pick("status", "pass", "fail")},
		&journal.Stale{Candidate: name, Incarnation: incarnation, Since: time.Unix(1, 0), Decision: decision},
		&journal.Policy{Policy: w.policy()},
		&journal.Exclude{Candidate: name, Order: journal.Order{Actor: "ada", Reason: "r"}},
	}).Draw(w.t, "of the group")
}

func (w *town) policy() policy.Policy {
	p := policy.Default()
	p.Election = w.pick("election", policy.External, policy.Managed)
	p.Health.FailureThreshold = 1
	return p
}

func (w *town) version(group string) uint64 {
	if g := w.v.Group(group); g != nil {
		return g.Version
	}
	return 0
}

func (w *town) ofComponent(group string) journal.Data {
	w.runs++
	decision := journal.Decision{Basis: w.version(group)}
	decision.Projector, _ = w.v.Projector()
	session, name := w.session(), w.candidate()
	return rapid.SampledFrom([]journal.Data{
		&journal.Grant{Candidate: name, Session: session},
		&journal.Grant{Candidate: name, Session: session},
		&journal.Confirm{Session: session, Candidate: name, Address: "http://" + name, Attempt: w.runs},
		&journal.Ready{Session: session, Ready: true},
		&journal.Release{Session: session, Reason: "resigned"},
		&journal.Revoke{Session: session, Reason: "lost"},
		&journal.Transfer{To: name, Force: true, Order: journal.Order{Actor: "ada", Reason: "r"}},
		&journal.Yield{Session: session, Reason: "health", Decision: decision},
		&journal.Hold{Session: session, Reason: "health", Decision: decision},
	}).Draw(w.t, "of the component")
}

func (w *town) listen(group, candidate string) *follower {
	return &follower{w.hub.listen(w.v, group, candidate), standing.Of(w.v, group, candidate), 0}
}

// follower is a listener with what it was told.
type follower struct {
	*listener
	told  standing.Candidate
	wakes int
}

// take says whether the follower was woken, and has it look where its candidate stands if so.
func (f *follower) take(v *view.View) bool {
	select {
	case <-f.woken:
		f.told = standing.Of(v, f.group, f.candidate)
		f.wakes++
		return true
	default:
		return false
	}
}

// Whoever listens knows after every record where its candidate stands, having looked only when woken: those that come
// late, those that leave and come back, and several of one candidate.
func TestWhoeverIsConcernedIsWoken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &town{t: t, v: view.New(), hub: newHub()}
		w.tell("_", "", &journal.Takeover{Instance: "journald-0"})
		var followers []*follower
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			switch rapid.IntRange(0, 5).Draw(t, "who comes and goes") {
			case 0:
				followers = append(followers, w.listen(w.pick("group", "g", "g", "other", "new"), w.candidate()))
			case 1:
				if n := len(followers); n > 0 {
					w.hub.leave(followers[n-1].listener)
					followers = followers[:n-1]
				}
			}
			w.step()
			for _, f := range followers {
				f.take(w.v)
				require.True(t, standing.Same(standing.Of(w.v, f.group, f.candidate), f.told), "%s in %s was not woken", f.candidate, f.group)
			}
		}
		for _, f := range followers {
			w.hub.leave(f.listener)
		}
		require.Empty(t, w.hub.groups)
	})
}

// A record wakes only those that it may concern.
func TestOthersSleep(t *testing.T) {
	w := &town{v: view.New(), hub: newHub()}
	followers := map[string]*follower{}
	for _, name := range []string{"a", "b", "c"} {
		w.tell("g", "", &journal.Join{Candidate: name, Incarnation: "1", Components: []string{"x"}})
		followers[name] = w.listen("g", name)
	}
	other := w.listen("other", "a")
	woken := func() (names []string) {
		for _, name := range []string{"a", "b", "c"} {
			if followers[name].take(w.v) {
				names = append(names, name)
			}
		}
		require.False(t, other.take(w.v), "the other group has nothing to do with it")
		return names
	}
	w.tell("g", "x", &journal.Grant{Candidate: "a", Session: "S1"})
	require.Equal(t, []string{"a"}, woken())
	w.tell("g", "x", &journal.Grant{Candidate: "b", Session: "S2"})
	require.Equal(t, []string{"a", "b"}, woken(), "one loses the term and one gets it")
	w.tell("g", "x", &journal.Confirm{Session: "S2", Candidate: "b", Address: "http://b", Attempt: 1})
	require.Equal(t, []string{"b"}, woken())
	w.tell("g", "x", &journal.Confirm{Session: "S1", Candidate: "a", Address: "http://a", Attempt: 1})
	require.Empty(t, woken(), "it was stale")
	w.tell("g", "", &journal.Health{Candidate: "c", Incarnation: "1", Check: "disk", Run: 1, Status: "pass"})
	require.Equal(t, []string{"c"}, woken())
	w.tell("g", "", &journal.Policy{Policy: policy.Default()})
	require.Equal(t, []string{"a", "b", "c"}, woken(), "all live by it")
	w.tell("other", "x", &journal.Grant{Candidate: "c", Session: "S3"})
	require.Empty(t, woken())
}
