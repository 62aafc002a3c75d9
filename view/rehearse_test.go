package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// TestARehearsalChangesNothing holds that the view, and what is on its agenda, stays as it was, and that the event then
// fares as was said.
func TestARehearsalChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		for range g.length(25) {
			g.step()
			e := journal.Event{ID: fmt.Sprint("order-", len(g.records)), Source: "operator/alice", Group: g.group()}
			e.Data = g.order(g.pick("order", "transfer", "exclude", "include", "pause", "resume"), &e)
			before, hash, touched, timers := state(t, g.v), g.v.Hash(), g.v.Touched(), g.v.Timers()
			r, err := g.v.Rehearse(&e, g.now, g.live)
			require.NoError(t, err)
			require.Equal(t, hash, g.v.Hash())
			require.Equal(t, before, state(t, g.v))
			require.Equal(t, touched, g.v.Touched())
			require.Equal(t, timers, g.v.Timers())
			require.NoError(t, g.v.CheckDerived())
			if _, result := g.add(e); r.Verdict != result.Verdict || r.Reason != result.Reason {
				require.Fail(t, "the order fared otherwise", "%s %q, rehearsed as %s %q", result.Verdict, result.Reason, r.Verdict, r.Reason)
			}
		}
	})
}

// TestObstaclesKeepFromLeading holds that a candidate which does not lead is fit to take over exactly where nothing is
// said to stand in its way.
func TestObstaclesKeepFromLeading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		for range g.length(150) {
			g.step()
			for _, group := range g.v.Groups() {
				for _, c := range group.Components {
					agrees(t, g, group, c)
				}
			}
		}
	})
}

func agrees(t *rapid.T, g *generator, group *view.Group, c *view.Component) {
	for _, k := range group.Candidates {
		if c.Term != nil && c.Term.Candidate == k.Name {
			continue
		}
		obstacles := group.Obstacles(c, k, g.now, emptyLiveness())
		require.Equal(t, g.v.Fit(group.Name, c.Name, k.Name, g.now), len(obstacles) == 0, "%s: %v", k.Name, obstacles)
	}
}

// stage is a view in which one thing after the other is said.
type stage struct {
	t   *testing.T
	v   *view.View
	now time.Time
}

func newStage(t *testing.T, change func(*policy.Policy)) *stage {
	s := &stage{t, view.New(), epoch}
	s.say("projector/p", "_", &journal.Takeover{Instance: "p"})
	p := rules()
	change(&p)
	s.say("operator/alice", "g", &journal.Policy{Policy: p, Order: order()})
	return s
}

func (s *stage) say(source, about string, data journal.Data) view.Verdict {
	s.t.Helper()
	e := s.event(source, about, data)
	r := stored(s.t, s.v.Sequence()+1, s.now, e)
	require.NoError(s.t, r.Err)
	return s.v.Apply(&r).Verdict
}

func (s *stage) event(source, about string, data journal.Data) journal.Event {
	group, component, _ := strings.Cut(about, "/")
	return journal.Event{
		ID: fmt.Sprint(s.v.Sequence() + 1), Source: source, Group: group, Component: component, Time: s.now, Data: data,
	}
}

func (s *stage) join(name string, priority int) {
	s.say("candidate/"+name, "g", &journal.Join{Candidate: name, Incarnation: "1", Components: []string{"a"}, Priority: priority})
}

func (s *stage) health(name, status string, run uint64) {
	s.say("candidate/"+name, "g", &journal.Health{Candidate: name, Incarnation: "1", Check: "disk", Status: status, Reason: "full", Run: run})
}

func (s *stage) rehearse(about string, data journal.Data) *view.Rehearsal {
	s.t.Helper()
	e := s.event("operator/alice", about, data)
	r, err := s.v.Rehearse(&e, s.now, emptyLiveness())
	require.NoError(s.t, err)
	return r
}

// chances are what is said of the candidates, in order.
func chances(p *view.Prospect) (all []string) {
	for _, c := range p.Chances {
		words := []string{c.Candidate}
		for _, o := range c.Obstacles {
			words = append(words, o.Name)
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

func TestRehearseTransfer(t *testing.T) {
	s := newStage(t, func(*policy.Policy) {})
	for i, name := range []string{"k1", "k2", "k3", "k4", "k5", "k6"} {
		s.join(name, i%2)
	}
	for _, name := range []string{"k1", "k2", "k3", "k4", "k5"} {
		s.health(name, "pass", 1)
	}
	s.say("candidate/k1", "g/a", &journal.Grant{Candidate: "k1", Session: "S1"})
	s.say("operator/alice", "g", &journal.Exclude{Candidate: "k3", Until: s.now.Add(time.Hour), Order: order()})
	s.health("k5", "fail", 2)

	best := s.rehearse("g/a", &journal.Transfer{Order: order()})
	require.Equal(t, view.Applied, best.Verdict)
	require.Len(t, best.Decided, 1)
	require.Equal(t, "k2", best.Decided[0].Data[0].(*journal.Yield).To)
	require.Len(t, best.Prospects, 1)
	p := best.Prospects[0]
	require.Equal(t, "k1", p.Holder)
	require.Equal(t, "k2", p.Next)
	require.Equal(t, []string{"k2", "k4", "k1 leads", "k3 excluded", "k5 last-run-failed", "k6 unknown"}, chances(&p))
	require.Equal(t, s.now.Add(time.Hour), p.Chances[3].Obstacles[0].Until)
	require.Equal(t, "disk failed 1 times in a row: full", p.Chances[4].Obstacles[0].Detail)

	refused := s.rehearse("g/a", &journal.Transfer{To: "k6", Order: order()})
	require.Equal(t, view.Invalid, refused.Verdict)
	require.Contains(t, refused.Reason, "not fit")
	require.Empty(t, refused.Decided)
	require.Equal(t, "k1", refused.Prospects[0].Next)
	forced := s.rehearse("g/a", &journal.Transfer{To: "k6", Force: true, Order: order()})
	require.Equal(t, "k6", forced.Prospects[0].Next)
	require.Equal(t, view.Invalid, s.rehearse("nowhere/a", &journal.Transfer{Order: order()}).Verdict)
}

// TestRehearseWhatFollows has an order with consequences beyond itself: a yield that a pause held back, an election
// that an exclusion did.
func TestRehearseWhatFollows(t *testing.T) {
	s := newStage(t, func(*policy.Policy) {})
	s.join("k1", 0)
	s.join("k2", 0)
	s.health("k2", "pass", 1)
	s.say("candidate/k1", "g/a", &journal.Grant{Candidate: "k1", Session: "S1"})
	s.say("operator/alice", "g", &journal.Pause{Order: order()})
	for run := range uint64(3) {
		s.health("k1", "fail", run+1)
	}
	resumed := s.rehearse("g", &journal.Resume{Order: order()})
	require.Len(t, resumed.Decided, 1)
	require.Equal(t, view.Prospect{Component: "a", Holder: "k1", Next: "k2", Chances: resumed.Prospects[0].Chances}, resumed.Prospects[0])
	require.Equal(t, []string{"k2", "k1 leads fail"}, chances(&resumed.Prospects[0]))

	m := newStage(t, func(p *policy.Policy) { p.Election = policy.Managed })
	m.say("operator/alice", "g", &journal.Exclude{Candidate: "k1", Order: order()})
	m.join("k1", 0)
	included := m.rehearse("g", &journal.Include{Candidate: "k1", Order: order()})
	require.Equal(t, "k1", included.Decided[0].Data[0].(*journal.Grant).Candidate)
	require.Equal(t, "k1", included.Prospects[0].Next)
	require.Empty(t, included.Prospects[0].Holder)
}

func TestObstacles(t *testing.T) {
	s := newStage(t, func(p *policy.Policy) { p.Election = policy.Managed })
	s.join("k1", 0)
	s.health("k1", "pass", 1)
	g := s.v.Group("g")
	c, k := g.Components["a"], g.Candidates["k1"]
	require.Empty(t, g.Obstacles(c, k, s.now, emptyLiveness()))
	live := emptyLiveness()
	live.Lapsed[view.Holder{Group: "g", Candidate: "k1", Incarnation: "1"}] = s.now
	require.Equal(t, "lapsed", g.Obstacles(c, k, s.now, live)[0].Name)

	s.decide() // the election
	require.Equal(t, []string{"leads"}, s.obstacles("k1"))
}

// TestObstaclesEnd has what keeps a former holder from leading end when its time is over.
func TestObstaclesEnd(t *testing.T) {
	s := newStage(t, func(*policy.Policy) {})
	for _, name := range []string{"k1", "k2", "k3"} {
		s.join(name, 0)
		s.health(name, "pass", 1)
	}
	s.say("candidate/k1", "g/a", &journal.Grant{Candidate: "k1", Session: "S1"})
	s.say("operator/alice", "g/a", &journal.Transfer{Order: order()})
	s.decide() // to tell it
	s.say("candidate/k1", "g/a", &journal.Revoke{Session: "S1", Reason: "yielded"})
	s.say("candidate/k2", "g/a", &journal.Grant{Candidate: "k2", Session: "S2"})
	rules := s.v.Group("g").Policy
	require.Equal(t, []string{"held-down until " + after(s.now, rules.Health.HoldDown)}, s.obstacles("k1"))
	s.say("candidate/k3", "g/a", &journal.Grant{Candidate: "k3", Session: "S3"})
	require.Equal(t, []string{"stopping until " + after(s.now, rules.Lease.ReleaseWithin+rules.Lease.Duration)}, s.obstacles("k2"))
	s.now = s.now.Add(time.Duration(max(rules.Health.HoldDown, rules.Lease.ReleaseWithin+rules.Lease.Duration)))
	require.Empty(t, s.obstacles("k1"))
	require.Empty(t, s.obstacles("k2"))
}

func after(at time.Time, d policy.Duration) string {
	return at.Add(time.Duration(d)).Format(time.RFC3339)
}

// decide folds what is to be decided first.
func (s *stage) decide() {
	s.t.Helper()
	all := s.v.Decide(s.now, emptyLiveness(), never)
	require.NotEmpty(s.t, all)
	for _, e := range all[0].Events("projector/p", 1, s.now) {
		r := stored(s.t, s.v.Sequence()+1, s.now, e)
		require.Equal(s.t, view.Applied, s.v.Apply(&r).Verdict)
	}
}

// obstacles are those of a candidate, and until when.
func (s *stage) obstacles(name string) (all []string) {
	g := s.v.Group("g")
	for _, o := range g.Obstacles(g.Components["a"], g.Candidates[name], s.now, emptyLiveness()) {
		if o.Until.IsZero() {
			all = append(all, o.Name)
		} else {
			all = append(all, o.Name+" until "+o.Until.Format(time.RFC3339))
		}
	}
	return all
}
