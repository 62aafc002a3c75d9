package view_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// TestWhatIsDecidedIsSafe holds I4: a health yield goes to a fit candidate; I5: no decision leaves a component without a
// term while somebody may lead it; and row 15: whoever is not heard, or is excluded, is not chosen.
func TestWhatIsDecidedIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		for range g.length(150) {
			g.step()
			for _, p := range g.v.Decide(g.now, g.live, never) {
				g.judge(&p)
			}
		}
	})
}

func (g *generator) judge(p *view.Proposal) {
	group := g.v.Group(p.Group)
	c := group.Components[p.Component]
	for i, data := range p.Data {
		switch d := data.(type) {
		case *journal.Yield:
			ordered := c.Handover != nil && c.Handover.Transfer != nil
			require.True(g.t, ordered || g.v.Fit(p.Group, p.Component, d.To, g.now), "%+v", d)
		case *journal.Revoke:
			require.Equal(g.t, policy.Managed, group.Policy.Election)
			require.Equal(g.t, c.Term.Session, d.Session)
			if anybody(group, p.Component) {
				require.IsType(g.t, &journal.Grant{}, p.Data[i+1])
			}
		case *journal.Grant:
			g.judgeGrant(group, c, d, i)
		}
	}
}

func (g *generator) judgeGrant(group *view.Group, c *view.Component, d *journal.Grant, i int) {
	require.Equal(g.t, policy.Managed, group.Policy.Election)
	require.False(g.t, group.Paused)
	require.Equal(g.t, c.Term != nil, i == 1, "a term is open until the batch closes it")
	k := group.Candidates[d.Candidate]
	require.NotZero(g.t, k.Joined)
	require.Contains(g.t, k.Components, c.Name)
	require.NotContains(g.t, g.live.Lapsed, view.Holder{Group: group.Name, Candidate: k.Name, Incarnation: k.Incarnation})
	require.LessOrEqual(g.t, k.Expired, k.Spoke)
	forced := c.Handover != nil && c.Handover.ForcedTo == k.Name
	if c.Term != nil && c.Term.Yield != nil {
		forced = c.Term.Yield.Forced && c.Term.Yield.To == k.Name
	}
	require.True(g.t, forced || !k.Excluded)
}

func anybody(g *view.Group, component string) bool {
	for _, k := range g.Candidates {
		if k.Joined != 0 && slices.Contains(k.Components, component) {
			return true
		}
	}
	return false
}

// TestSessionsOfAnElection holds that a session is the same for the same decision, another for any other, and a UUID as
// Flink's layout asks for.
func TestSessionsOfAnElection(t *testing.T) {
	seen := map[string]string{}
	grant := func(what string, f *folder) {
		t.Helper()
		for range 2 {
			all := f.v.Decide(f.now, view.Liveness{}, never)
			require.NotEmpty(t, all, what)
			for _, p := range all {
				g := p.Data[len(p.Data)-1].(*journal.Grant)
				require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, g.Session)
				about := fmt.Sprint(what, p.Component)
				require.Contains(t, []string{"", about}, seen[g.Session], what)
				seen[g.Session] = about
			}
		}
	}
	managed := func(group string) *folder {
		f := newFolder(t)
		rules := rules()
		rules.Election = policy.Managed
		f.fold(group, "", "operator/alice", &journal.Policy{Policy: rules, Order: order()})
		return f
	}
	join := func(f *folder, group, name, incarnation string) {
		f.fold(group, "", "candidate/k", &journal.Join{Candidate: name, Incarnation: incarnation, Components: []string{"rest"}})
	}
	f := managed("g")
	join(f, "g", "k", "1")
	grant("first", f)
	f.service("", &journal.Join{Candidate: "k", Incarnation: "1", Components: []string{"rest"}})
	grant("the group has moved", f)

	f = managed("g")
	join(f, "g", "k", "2")
	grant("another life", f)

	f = managed("g")
	join(f, "g", "l", "1")
	grant("another candidate", f)

	f = managed("h")
	join(f, "h", "k", "1")
	grant("another group", f)

	f = managed("g")
	f.now = f.now.Add(time.Hour)
	join(f, "g", "k", "1")
	grant("another journal", f)

	f = managed("g")
	f.service("", &journal.Join{Candidate: "k", Incarnation: "1", Components: []string{"other"}})
	grant("another component", f)
}

// TestManySilentAtOnce holds that what a network outage does to many is one batch, and one alert.
func TestManySilentAtOnce(t *testing.T) {
	f, live := newFolder(t), emptyLiveness()
	for i := range 250 {
		name := fmt.Sprintf("k-%03d", i)
		f.service("", &journal.Join{Candidate: name, Incarnation: "1", Components: []string{"rest"}})
		f.service("", &journal.Health{Candidate: name, Incarnation: "1", Check: "disk", Status: "pass", Run: 1})
		live.Stale[view.Holder{Group: "g", Candidate: name, Incarnation: "1"}] = f.now
		f.v.Attend("g", name)
	}
	var batches []int
	for range 10 {
		all := f.v.Decide(f.now, live, never)
		if len(all) == 0 {
			break
		}
		require.Len(t, all, 1)
		batches = append(batches, len(all[0].Data))
		for _, e := range all[0].Events("projector/p", 1, f.now) {
			require.Equal(t, view.Applied, f.fold(e.Group, e.Component, e.Source, e.Data).Verdict)
		}
	}
	require.Equal(t, []int{100, 100, 50, 1}, batches)
	require.Equal(t, "ObserversSilent", f.v.Group("g").Alerts[0].Name)
}
