package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/leadership-journal/journald/journal"
)

// maxBatch is how many candidates are found silent in one decision: what one batch of the journal takes, with room.
const maxBatch = 100

// fallenSilent records which candidates' agents have not been heard for the group's staleAfter. One that never reports
// health is no concern of it.
func (d *decision) fallenSilent() {
	var over []*Candidate
	for _, k := range d.g.Candidates {
		if _, stale := d.live.Stale[k.holder(d.g)]; stale && k.reports() && k.Silent == nil {
			over = append(over, k)
		}
	}
	slices.SortFunc(over, byCandidate)
	for _, k := range over[:min(len(over), maxBatch)] {
		since := d.live.Stale[k.holder(d.g)]
		d.data = append(d.data, &journal.Stale{Candidate: k.Name, Incarnation: k.Incarnation, Since: since})
		d.cause = append(d.cause, k.Spoke)
	}
}

func byCandidate(a, b *Candidate) int {
	if a.Name < b.Name {
		return -1
	}
	return 1
}

// reports says whether a candidate takes part and has ever reported health.
func (k *Candidate) reports() bool { return k.Joined != 0 && !k.Reported.IsZero() }

// observersSilent is row 4: what befalls all at once says more about what they have in common than about the leader.
func (d *decision) observersSilent() {
	n, spread := d.g.allSilent()
	if n >= 2 && spread <= time.Duration(d.g.Policy.Health.StaleAfter) {
		d.begun(observersSilent, 0, func() string {
			return fmt.Sprintf("all %d agents went silent within %s, as by a common cause", n, spread)
		})
		return
	}
	d.ended(observersSilent, "not all agents are silent, or not since the same time", 0)
}

// allSilent is how many candidates report health, if every one of them is silent, and in what time they went so; 0
// where one is not.
func (g *Group) allSilent() (n int, spread time.Duration) {
	var first, last time.Time
	for _, k := range g.Candidates {
		switch {
		case !k.reports():
			continue
		case k.Silent == nil:
			return 0, 0
		case n == 0:
			first, last = k.Silent.Since, k.Silent.Since
		}
		n++
		first, last = earlier(first, k.Silent.Since), later(last, k.Silent.Since)
	}
	return n, last.Sub(first)
}

// leaderSilent is row 5: not to know how the leader is does not mean that it fails.
func (d *decision) leaderSilent() {
	t := d.c.Term
	if t == nil || d.g.Candidates[t.Candidate] == nil || d.g.Candidates[t.Candidate].Silent == nil {
		d.ended(leaderSilent, "the leader's agent was heard again, or it leads no more", 0)
		return
	}
	if active(d.g.Alerts, observersSilent) {
		d.ended(leaderSilent, "all agents are silent, as by a common cause", 0)
		return
	}
	s := d.g.Candidates[t.Candidate].Silent
	d.begun(leaderSilent, s.Sequence, func() string { return t.Candidate + "'s agent has been silent since " + stamp(s.Since) })
}
