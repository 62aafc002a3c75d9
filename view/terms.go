package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// grant opens a term, unless its session is over or its lock was held by somebody later.
func (f *fold) grant(d *journal.Grant) Result {
	c := f.c
	if why := f.voidIfDecided(d.Decision); why != "" {
		return f.result(Void, why)
	}
	if d.Decision != nil && c.Term != nil && c.Term.Session != d.Session {
		return f.result(Void, "the term that it was to follow is still open: the revoke decided with it had no force")
	}
	if d.Decision == nil && f.g.Policy.Election == policy.Managed {
		return f.result(Invalid, "the group's election is managed: the projector grants")
	}
	older := c.lockIsOlder(d.Lock)
	switch {
	case c.Term != nil && c.Term.Session == d.Session:
		return f.result(Duplicate, "the session is open already, held by "+c.Term.Candidate)
	case c.session(d.Session) != nil:
		return f.result(Stale, "the session has ended, or was refused")
	case older:
		c.forget(Session{ID: d.Session, Candidate: d.Candidate, Refused: true})
		return f.result(Stale, fmt.Sprintf("lock revision %d is lower than one seen before", d.Lock.Revision))
	}
	f.supersede(d.Candidate, false)
	f.open(d.Candidate, d.Session)
	if d.Decision != nil {
		f.elected()
	}
	f.letErasuresBe()
	return f.applied()
}

// open begins a term at this record.
func (f *fold) open(candidate, session string) {
	c := f.c
	term := &Term{Epoch: f.r.Sequence, Candidate: candidate, Session: session, Since: f.v.time}
	f.g.lead(c, term)
	holder := f.g.Candidates[candidate]
	if holder != nil {
		term.Candidate, term.Incarnation = holder.Name, holder.Incarnation
		term.Unfit = holder.failed && f.g.best(c, f.v.time) != ""
	}
	if h := c.Handover; h != nil {
		term.Forced = h.ForcedTo == candidate && (holder == nil || holder.Rank != "pass")
		h.Transfer, h.ForcedTo = nil, ""
	}
	c.Epoch, c.Shown = f.r.Sequence, f.r.Sequence
	f.countTerm()
}

// elected notes how the projector came to choose the new holder.
func (f *fold) elected() {
	k := f.g.Candidates[f.c.Term.Candidate]
	if k == nil {
		return
	}
	f.c.Term.Sole = !f.c.Term.Forced && k.fails()
	k.Expired = 0
}

// countTerm keeps what LeaderFlapping needs: the times of one more term than the policy tolerates.
func (f *fold) countTerm() {
	c := f.c
	before := c.flapping(f.g, f.v.time)
	c.Terms = newest(append(c.Terms, momentOf(f.v.time)), min(f.g.Policy.Flapping+1, maxTimes))
	if !before && c.flapping(f.g, f.v.time) {
		f.anomaly(&c.Anomalies, "flapping", fmt.Sprintf("more than %d terms within %s",
			f.g.Policy.Flapping, f.g.Policy.Health.Window))
	}
}

// flapping says whether more terms began within the window than are tolerated.
func (c *Component) flapping(g *Group, now time.Time) bool {
	n := len(c.Terms) - g.Policy.Flapping - 1
	return n >= 0 && now.Sub(c.Terms[n].time()) < time.Duration(g.Policy.Health.Window)
}

// supersede closes the open term, if any, in favor of another holder's or another session.
func (f *fold) supersede(by string, adopted bool) {
	c, old := f.c, f.c.Term
	if old == nil {
		return
	}
	f.close()
	if !old.Released && (old.Candidate != by || old.Yield != nil) {
		h := c.handing()
		h.Stopping = newest(append(h.Stopping, Stopping{old.Session, old.Candidate, f.r.Sequence, f.v.time}), maxStrays)
	}
	if old.Candidate == by || adopted {
		return
	}
	h := c.handing()
	h.Overlaps = newest(append(h.Overlaps, Overlap{old.Session, f.v.time}), maxStrays)
	f.anomaly(&c.Anomalies, "overlapping-terms",
		fmt.Sprintf("%s was granted leadership while %s had not let go", by, old.Candidate), old.Epoch)
}

// close ends the open term, and with it its yield.
func (f *fold) close() {
	c, t := f.c, f.c.Term
	c.forget(Session{ID: t.Session, Candidate: t.Candidate, Attempts: t.Attempts})
	f.g.lead(c, nil)
	c.Shown = f.r.Sequence
	y := t.Yield
	if y == nil {
		return
	}
	if y.Forced {
		c.handing().ForcedTo = y.To
	}
	holder := f.g.Candidates[t.Candidate]
	if holder != nil && (t.Incarnation == "" || t.Incarnation == holder.Incarnation) {
		passes := holder.Rank == "pass" && !holder.failed // it recovered, and will not report another pass
		holder.HeldDown = &HoldDown{Since: f.v.time, Passed: passes, ByTime: y.Ordered}
		f.concern(holder)
	}
}

// confirm takes the holder's word for where it can be reached, and makes it the intent.
func (f *fold) confirm(d *journal.Confirm) Result {
	c := f.c
	if c.Term == nil || c.Term.Session != d.Session {
		return f.lateConfirm(d)
	}
	t := c.Term
	newer := attempt(&t.Attempts, t.Candidate, d)
	if d.Candidate != t.Candidate {
		return f.staleConfirm(d, newer, "the session is held by "+t.Candidate)
	}
	if !newer {
		return f.result(Duplicate, "the attempt is not above the last one seen")
	}
	// the term's own strings: one copy of each, not one for each confirmation
	info := &journal.LeaderInfo{Session: t.Session, Candidate: t.Candidate, Address: d.Address, Properties: d.Properties}
	if t.Confirmed && equal(c.Leader(), info) {
		return f.result(Duplicate, "")
	}
	if old := c.Leader(); old != nil && old.Session == d.Session && old.Address != d.Address {
		f.anomaly(&c.Anomalies, "address-changed",
			fmt.Sprintf("from %s to %s under one session, which Flink's readers ignore", old.Address, d.Address), c.Intent.Sequence)
	}
	t.Confirmed = true
	if c.Handover != nil {
		c.Handover.InVain = nil
	}
	f.intend(info)
	return f.applied()
}

func (f *fold) lateConfirm(d *journal.Confirm) Result {
	s := f.c.session(d.Session)
	if s == nil || s.Refused {
		return f.result(UnknownSession, "the session was never granted")
	}
	return f.staleConfirm(d, attempt(&s.Attempts, s.Candidate, d), "the session has ended")
}

func (f *fold) staleConfirm(d *journal.Confirm, newer bool, why string) Result {
	if newer {
		f.anomaly(&f.c.Anomalies, "late-confirm", fmt.Sprintf("%s confirmed session %s, but %s", d.Candidate, d.Session, why))
	}
	return f.result(Stale, why)
}

// attempt remembers a candidate's highest attempt within a session and says whether this one is above it. Whatever
// strangers there are, the holder has its place.
func attempt(all *[]Attempt, holder string, d *journal.Confirm) bool {
	for i := range *all {
		if a := &(*all)[i]; a.Candidate == d.Candidate {
			newer := d.Attempt > a.Attempt
			a.Attempt = max(a.Attempt, d.Attempt)
			return newer
		}
	}
	name := d.Candidate
	if name == holder {
		name = holder
	} else if len(*all) >= maxStrays {
		return false
	}
	*all = append(*all, Attempt{name, d.Attempt})
	return true
}

// intend makes leader info, or its absence, what targets must show.
func (f *fold) intend(info *journal.LeaderInfo) {
	c := f.c
	next := &Intent{Sequence: f.r.Sequence, Epoch: c.Epoch, Leader: info}
	if was := c.Intent; was != nil {
		next.Before, next.Replaced = was.Leader, was.Sequence
	}
	c.Intent, c.Shown = next, f.r.Sequence
	for i := range f.g.Targets {
		spec := &f.g.Targets[i]
		if spec.Observe || spec.Guarded {
			continue
		}
		if t := c.target(spec); t != nil {
			t.due(f.v.time)
			t.Attempts = 0
		}
	}
}

func (f *fold) ready(d *journal.Ready) Result {
	result := f.ofSession(d.Session)
	if result.Verdict == Applied {
		f.c.Term.Ready, f.c.Term.ReadyReason = strconv.FormatBool(d.Ready), d.Reason
	}
	return result
}

// ofSession is the verdict on an event that only the open session's holder can speak.
func (f *fold) ofSession(session string) Result {
	if f.c.Term != nil && f.c.Term.Session == session {
		return f.noted()
	}
	if s := f.c.session(session); s != nil && !s.Refused {
		return f.result(Stale, "the session has ended")
	}
	return f.result(UnknownSession, "the session was never granted")
}

func (f *fold) release(d *journal.Release) Result {
	result := f.ofSession(d.Session)
	if result.Verdict != Applied {
		f.c.stopped(d.Session)
		return result
	}
	if f.c.Term.Released {
		return f.result(Duplicate, "")
	}
	f.c.Term.release(f.r.Sequence)
	return f.applied()
}

// release notes that the holder has stopped.
func (t *Term) release(sequence uint64) {
	if !t.Released {
		t.Released, t.ReleasedBy = true, sequence
	}
}

func (f *fold) revoke(d *journal.Revoke) Result {
	c := f.c
	if why := f.voidIfDecided(d.Decision); why != "" {
		return f.result(Void, why)
	}
	if c.Term == nil || c.Term.Session != d.Session {
		if c.session(d.Session) == nil {
			c.forget(Session{ID: d.Session, Candidate: d.Candidate, Refused: true})
		}
		c.ended(d.Session)
		return f.result(Stale, "the session is not the open one")
	}
	f.replaced(d)
	f.close()
	f.letErasuresBe()
	if f.g.Policy.OnRevoke == policy.Clear && c.Leader() != nil && c.Leader().Session == d.Session {
		f.intend(nil)
	}
	return f.applied()
}

// The reasons for which the projector ends a term.
const (
	yielded        = "yielded"
	released       = "released" // without having been told to
	expired        = "expired"
	confirmTimeout = "confirm-timeout"
)

// replaced notes why the projector ends the open term, for as long as that keeps its holder from being chosen again.
func (f *fold) replaced(d *journal.Revoke) {
	c, t := f.c, f.c.Term
	k := f.g.Candidates[t.Candidate]
	if d.Decision == nil || k == nil || k.Incarnation != t.Incarnation {
		return
	}
	switch d.Reason {
	case expired:
		k.Expired = f.r.Sequence
	case confirmTimeout:
		h := c.handing()
		h.InVain = append(slices.DeleteFunc(h.InVain, f.g.gone), Tried{k.Name, k.Incarnation})
		k.HeldDown = &HoldDown{Since: f.v.time, ByTime: true}
	}
	f.concern(k)
}

// gone says whether a candidate that was tried takes no part any more, at least not in that life.
func (g *Group) gone(t Tried) bool {
	k := g.Candidates[t.Candidate]
	return k == nil || k.Joined == 0 || k.Incarnation != t.Incarnation
}

// stopped notes that a superseded holder has let go after all.
func (c *Component) stopped(session string) {
	if h := c.Handover; h != nil {
		h.Stopping = slices.DeleteFunc(h.Stopping, func(s Stopping) bool { return s.Session == session })
	}
}

// ended notes that the end of a superseded session was reported after all.
func (c *Component) ended(session string) {
	c.stopped(session)
	if h := c.Handover; h != nil {
		h.Overlaps = slices.DeleteFunc(h.Overlaps, func(o Overlap) bool { return o.Session == session })
	}
}

func (f *fold) withdraw(d *journal.Withdraw) Result {
	c := f.c
	own := c.Leader() != nil && c.Leader().Session == d.Session || c.Term != nil && c.Term.Session == d.Session
	switch {
	case d.Session == "" && !byOperator(&f.r.Event):
		return f.result(Invalid, "only an operator may leave the session out")
	case d.Session != "" && !own:
		return f.result(Stale, "the session is neither the leader info's nor the open one")
	case c.Intent != nil && c.Intent.Leader == nil:
		return f.result(Duplicate, "nothing is shown")
	}
	f.intend(nil)
	return f.applied()
}

// session is a closed or refused one that is still remembered.
func (c *Component) session(id string) *Session {
	for i := len(c.Sessions) - 1; i >= 0; i-- {
		if c.Sessions[i].ID == id {
			return &c.Sessions[i]
		}
	}
	return nil
}

// forget moves a session to those that are over.
func (c *Component) forget(s Session) {
	c.Sessions = newest(append(c.Sessions, s), maxSessions)
}

// lockIsOlder notes the revision, and says whether a higher one of that kind was seen before.
func (c *Component) lockIsOlder(lock *journal.Lock) bool {
	if lock == nil {
		return false
	}
	for i := range c.Locks {
		if l := &c.Locks[i]; l.Kind == lock.Kind {
			older := lock.Revision < l.Revision
			l.Revision = max(l.Revision, lock.Revision)
			return older
		}
	}
	c.Locks = newest(append(c.Locks, *lock), maxStrays)
	return false
}

func equal(a, b *journal.LeaderInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Session == b.Session && a.Candidate == b.Candidate && a.Address == b.Address && maps.Equal(a.Properties, b.Properties)
}

// newest drops the oldest elements of a list that is too long, in place.
func newest[T any](list []T, n int) []T {
	if over := len(list) - n; over > 0 {
		copy(list, list[over:])
		clear(list[n:])
		return list[:n]
	}
	return list
}
