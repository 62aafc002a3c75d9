package view

import (
	"slices"
	"time"
)

// fit says whether a candidate that joined for a component may take it over.
func (g *Group) fit(c *Component, k *Candidate, now time.Time) bool {
	at, ok := g.fitFrom(c, k)
	return ok && !at.After(now)
}

// fitFrom is the moment from which a candidate that joined for a component may take it over if nothing else happens;
// false where time alone does not make it fit.
func (g *Group) fitFrom(c *Component, k *Candidate) (time.Time, bool) {
	if k.Excluded || k.Rank != "pass" || k.Silent != nil || k.failed || k.mute() {
		return time.Time{}, false
	}
	if c.Term != nil && c.Term.Candidate == k.Name && c.Term.Yield != nil {
		return time.Time{}, false
	}
	at := c.stoppedBy(g, k)
	if h := k.HeldDown; h != nil && !g.waived(c, k) {
		if !h.Passed && !h.ByTime {
			return at, false
		}
		at = later(at, h.Since.Add(time.Duration(g.Policy.Health.HoldDown)))
	}
	return at, true
}

// stoppedBy is the moment from which a former holder is taken to have stopped, zero where nothing speaks against it.
func (c *Component) stoppedBy(g *Group, k *Candidate) (at time.Time) {
	for _, s := range c.handover().Stopping {
		if s.Candidate == k.Name && k.JoinedAnew < s.Sequence {
			at = later(at, s.Closed.Add(time.Duration(g.Policy.Lease.ReleaseWithin)).Add(time.Duration(g.Policy.Lease.Duration)))
		}
	}
	return at
}

// StoppingUntil is the moment from which a candidate that led a component, and has not said that it stopped, is taken to
// have stopped; zero where nothing speaks against it.
func (g *Group) StoppingUntil(c *Component, k *Candidate) time.Time { return c.stoppedBy(g, k) }

// HeldDownAt says whether a candidate that gave leadership up is held down at now, and until when; zero: until it passes.
func (g *Group) HeldDownAt(k *Candidate, now time.Time) (until time.Time, held bool) {
	h := k.HeldDown
	switch {
	case h == nil:
		return time.Time{}, false
	case !h.Passed && !h.ByTime:
		return time.Time{}, true
	}
	if until = h.Since.Add(time.Duration(g.Policy.Health.HoldDown)); until.After(now) {
		return until, true
	}
	return time.Time{}, false
}

// mute says whether a candidate's lease lapsed while it led, and it has not spoken since: it may not have noticed.
func (k *Candidate) mute() bool { return k.Expired > k.Spoke }

// fails says whether a candidate counts as failing in an election, where the last run of a check is enough.
func (k *Candidate) fails() bool { return k.Rank == "fail" || k.failed }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// best is the fit candidate with the highest priority, of equals the one that joined first, other than the holder;
// empty where nobody is fit.
func (g *Group) best(c *Component, now time.Time) string {
	return g.bestOf(c, now, func(*Candidate) bool { return true })
}

// bestOf is the best of those that may be chosen.
func (g *Group) bestOf(c *Component, now time.Time, may func(*Candidate) bool) string {
	var best *Candidate
	for _, k := range c.joined {
		if c.Term != nil && k.Name == c.Term.Candidate || !g.fit(c, k, now) || !may(k) {
			continue
		}
		if best == nil || k.before(best) {
			best = k
		}
	}
	if best == nil {
		return ""
	}
	return best.Name
}

// before orders candidates that are equally fit.
func (k *Candidate) before(other *Candidate) bool {
	if k.Priority != other.Priority {
		return k.Priority > other.Priority
	}
	return k.Joined < other.Joined
}

// waived says whether the hold-down does not count: the candidate is the only one, of those not excluded, that
// passes, and the leader fails.
func (g *Group) waived(c *Component, k *Candidate) bool {
	if c.Term == nil {
		return false
	}
	leader := g.Candidates[c.Term.Candidate]
	if leader == nil || leader.Rank != "fail" {
		return false
	}
	return !slices.ContainsFunc(c.joined, func(other *Candidate) bool {
		return other != k && !other.Excluded && other.Rank == "pass"
	})
}

// mayLead says whether the candidate has joined for the component.
func (k *Candidate) mayLead(c *Component) bool { return slices.Contains(c.joined, k) }

// watchForLeader starts or stops the clock of NoLeader.
func (c *Component) watchForLeader(g *Group, now time.Time) {
	if !c.leaderless(g) {
		c.LeaderlessSince = time.Time{}
	} else if c.LeaderlessSince.IsZero() {
		c.LeaderlessSince = now
	}
}

// leaderless says whether nobody leads a component that somebody could, or that is shown to clients.
func (c *Component) leaderless(g *Group) bool {
	if t := c.Term; t != nil && !t.Released {
		holder := g.Candidates[t.Candidate]
		if holder == nil || !holder.Left {
			return false
		}
	}
	return c.Leader() != nil || len(c.joined) > 0
}
