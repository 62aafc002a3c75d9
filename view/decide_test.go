package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// TestFit tells what makes a candidate fit to take over, one reason against it at a time. The holder fails; whether it
// is told to yield to the other says whether the other is fit.
func TestFit(t *testing.T) {
	join := func(f *folder, name, incarnation string) {
		f.service("", &journal.Join{Candidate: name, Incarnation: incarnation, Components: []string{"rest"}})
	}
	health := func(f *folder, name, incarnation, check, status string, run uint64) {
		f.service("", &journal.Health{Candidate: name, Incarnation: incarnation, Check: check, Status: status, Run: run})
	}
	for what, c := range map[string]struct {
		then func(f *folder)
		fit  bool
	}{
		"nothing": {func(*folder) {}, true},
		"it left": {func(f *folder) { f.service("", &journal.Leave{Candidate: "other", Incarnation: "1"}) }, false},
		"it left and came back": {func(f *folder) {
			f.service("", &journal.Leave{Candidate: "other", Incarnation: "1"})
			join(f, "other", "1")
		}, true},
		"it was started anew": {func(f *folder) { join(f, "other", "2") }, false},
		"and passes":          {func(f *folder) { join(f, "other", "2"); health(f, "other", "2", "disk", "pass", 1) }, true},
		"its last run failed": {func(f *folder) { health(f, "other", "1", "disk", "fail", 2) }, false},
		"of another check":    {func(f *folder) { health(f, "other", "1", "http", "fail", 1) }, false},
		"and passed then": {func(f *folder) {
			health(f, "other", "1", "disk", "fail", 2)
			health(f, "other", "1", "disk", "pass", 3)
		}, true},
		"an old run failed": {func(f *folder) { health(f, "other", "1", "disk", "fail", 1) }, true},
		"it may lead something else": {func(f *folder) {
			f.service("", &journal.Join{Candidate: "other", Incarnation: "1", Components: []string{"else"}})
		}, false},
		"it is excluded": {func(f *folder) {
			f.fold("g", "", "operator/alice", &journal.Exclude{Candidate: "other", Order: order()})
		}, false},
		"and included again": {func(f *folder) {
			f.fold("g", "", "operator/alice", &journal.Exclude{Candidate: "other", Order: order()})
			f.fold("g", "", "operator/alice", &journal.Include{Candidate: "other", Order: order()})
		}, true},
		"it is silent": {func(f *folder) {
			basis := journal.Decision{Projector: 1, Basis: f.v.Group("g").Version}
			f.fold("g", "", "projector/p", &journal.Stale{Candidate: "other", Incarnation: "1", Since: f.now, Decision: basis})
		}, false},
		"it was superseded": {func(f *folder) {
			f.service("rest", &journal.Grant{Candidate: "other", Session: "S2"})
			f.service("rest", &journal.Grant{Candidate: "holder", Session: "S3"})
		}, false},
		"and revoked": {func(f *folder) {
			f.service("rest", &journal.Grant{Candidate: "other", Session: "S2"})
			f.service("rest", &journal.Grant{Candidate: "holder", Session: "S3"})
			f.service("rest", &journal.Revoke{Session: "S2", Reason: "lost"})
		}, true},
		"and joined anew": {func(f *folder) {
			f.service("rest", &journal.Grant{Candidate: "other", Session: "S2"})
			f.service("rest", &journal.Grant{Candidate: "holder", Session: "S3"})
			join(f, "other", "1")
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFolder(t)
			for _, name := range []string{"holder", "other"} {
				join(f, name, "1")
				health(f, name, "1", "disk", "pass", 1)
			}
			f.service("rest", &journal.Grant{Candidate: "holder", Session: "S1"})
			c.then(f)
			for run := range uint64(3) {
				health(f, "holder", "1", "disk", "fail", run+2)
			}
			all := f.v.Decide(f.now, view.Liveness{}, never)
			require.Len(t, all, 1)
			require.Equal(t, "rest", all[0].Component)
			yield, told := all[0].Data[0].(*journal.Yield)
			require.Equal(t, c.fit, told, "%#v", all[0].Data[0])
			if told {
				require.Equal(t, "other", yield.To)
			} else {
				require.IsType(t, &journal.Hold{}, all[0].Data[0])
			}
		})
	}
}

// TestProposalsAreEvents holds what the contract says of decisions: each carries the projector, the basis that holds
// once those before it are folded, and its cause; its id follows from these, so that the same decision is one record.
func TestProposalsAreEvents(t *testing.T) {
	decided := []journal.Data{
		&journal.Hold{Session: "S1", Reason: "rate"}, &journal.Alert{Name: "YieldBlocked", Reason: "rate"},
		&journal.Clear{Name: "NoLeader", Reason: "led"},
		&journal.Yield{Session: "S1", To: "k", Reason: "test"}, &journal.Revoke{Session: "S1", Reason: "expired"},
		&journal.Grant{Candidate: "k", Session: "S2"},
	}
	ofGroup := []journal.Data{
		&journal.Stale{Candidate: "k", Incarnation: "1", Since: epoch}, &journal.Include{Candidate: "k", Order: order()},
		&journal.Resume{Order: order()}, &journal.Policy{Policy: rules(), Order: order()},
	}
	seen := map[string]bool{}
	for component, data := range map[string][]journal.Data{"rest": decided, "": ofGroup} {
		p := view.Proposal{Group: "g", Component: component, Basis: 7, Cause: []uint64{3}, Data: data}
		events := p.Events("projector/p", 2, epoch)
		require.Equal(t, events, p.Events("projector/p", 2, epoch))
		for i, e := range events {
			require.NoError(t, e.Validate())
			require.False(t, seen[e.ID], "two decisions have the id %s", e.ID)
			seen[e.ID] = true
			require.Equal(t, journal.Decision{Projector: 2, Basis: 7 + uint64(i), Cause: []uint64{3}}, decisionOf(t, e.Data))
		}
		p.Basis++
		for _, e := range p.Events("projector/p", 2, epoch) {
			require.False(t, seen[e.ID], "another basis is another decision")
		}
	}
}

func decisionOf(t *testing.T, data journal.Data) journal.Decision {
	switch d := data.(type) {
	case *journal.Hold:
		return d.Decision
	case *journal.Alert:
		return d.Decision
	case *journal.Clear:
		return d.Decision
	case *journal.Yield:
		return d.Decision
	case *journal.Stale:
		return d.Decision
	case *journal.Grant:
		return *d.Decision
	case *journal.Revoke:
		return *d.Decision
	case *journal.Include:
		return *d.Decision
	case *journal.Resume:
		return *d.Decision
	case *journal.Policy:
		return *d.Decision
	}
	require.Fail(t, "no decision", "%T", data)
	return journal.Decision{}
}

// TestOneProposalForEachGroup holds that groups do not wait for each other, that the components of one do, and that what
// was proposed is proposed again until it is folded.
func TestOneProposalForEachGroup(t *testing.T) {
	f := newFolder(t)
	for _, group := range []string{"h", "g"} {
		for _, component := range []string{"b", "a"} {
			f.fold(group, component, "candidate/k", &journal.Grant{Candidate: "k", Session: "S1"})
		}
	}
	now := f.now.Add(time.Minute)
	all := f.v.Decide(now, view.Liveness{}, never)
	require.Equal(t, all, f.v.Decide(now, view.Liveness{}, never))
	about := func(all []view.Proposal) (names []string) {
		for _, p := range all {
			names = append(names, p.Group+"/"+p.Component)
		}
		return names
	}
	require.Equal(t, []string{"g/a", "h/a"}, about(all))
	require.Equal(t, []string{"h/a"}, about(f.v.Decide(now, view.Liveness{}, func(group string) bool { return group == "g" })))
	for _, e := range all[0].Events("projector/p", 1, now) {
		require.Equal(t, view.Applied, f.fold(e.Group, e.Component, e.Source, e.Data).Verdict)
	}
	require.Equal(t, []string{"g/b", "h/a"}, about(f.v.Decide(now, view.Liveness{}, never)))
}

// TestReconsider holds that what is settled is looked at again when it is asked for, and that an unknown group is none.
func TestReconsider(t *testing.T) {
	f := newFolder(t)
	f.service("rest", &journal.Grant{Candidate: "k", Session: "S1"})
	require.Empty(t, f.v.Decide(f.now, view.Liveness{}, never))
	require.Empty(t, f.v.Touched())
	f.v.Reconsider("g")
	f.v.Reconsider("nobody")
	require.Equal(t, []string{"g", "g/rest"}, f.v.Touched())
	require.Empty(t, f.v.Decide(f.now, view.Liveness{}, never))
	at, ok := f.v.Wake()
	require.True(t, ok)
	require.Equal(t, f.now.Add(time.Minute), at)
}

// TestApplyKeepsPace holds what a view says of itself: the newest record's sequence, and a time that never falls, though
// the clock of a new leader of the stream may be behind.
func TestApplyKeepsPace(t *testing.T) {
	v := view.New()
	for i, second := range []int{5, 3, 7} {
		r := stored(t, uint64(i+1), epoch.Add(time.Duration(second)*time.Second), journal.Event{
			ID: "id", Source: "candidate/k", Group: "g", Component: "rest", Data: &journal.Grant{Candidate: "k", Session: string(rune('A' + i))},
		})
		require.Equal(t, view.Applied, v.Apply(&r).Verdict)
		require.Equal(t, uint64(i+1), v.Sequence())
	}
	require.Equal(t, epoch.Add(7*time.Second), v.Time())
	require.Equal(t, epoch.Add(7*time.Second), v.Group("g").Components["rest"].Term.Since)

	garbage := journal.NewRecord(4, epoch, "leadership.g._.raw", []byte("no event"))
	result := v.Apply(&garbage)
	require.Equal(t, view.Invalid, result.Verdict)
	require.NotEmpty(t, result.Reason)
	require.Nil(t, result.Group)
	require.Equal(t, uint64(4), v.Sequence())
	require.Equal(t, "NoLeader: gone", view.Alert{Name: "NoLeader", Reason: "gone"}.String())
}
