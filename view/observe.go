package view

import (
	"fmt"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// watch takes note of what a target was seen to show. It never becomes an intent, but by adoption.
func (f *fold) watch(d *journal.Watch) Result {
	if d.Gap {
		f.gap(d.Target)
		return f.noted()
	}
	spec, t := f.g.target(f.c, d.Target)
	if t == nil {
		return f.noted() // not shown there: none of our business
	}
	if d.Revision <= t.Revision {
		return f.noted() // from before the last push, or the last observation
	}
	was := t.Entry
	t.Revision, t.Fence, t.Entry, t.Holder, t.Participants = d.Revision, d.Sequence, d.Entry, d.Holder, d.Participants
	switch {
	case !f.g.Keeps(spec):
		t.State = "" // there is nothing that it could be out of sync with
		return f.noted()
	case spec.Guarded:
		return f.guarded(t, d)
	}
	f.compare(t, d, was)
	return f.noted()
}

// gap says that observations of a target may have been missed: the next full one counts at any revision.
func (f *fold) gap(name string) {
	if f.c != nil {
		f.c.missed(name)
		return
	}
	for _, c := range f.g.Components {
		if c.missed(name) {
			f.concerned = append(f.concerned, c)
		}
	}
}

// missed notes a gap, and says whether there is a target that it concerns.
func (c *Component) missed(name string) bool {
	t := c.Targets[name]
	if t == nil {
		return false
	}
	t.Revision, t.State = 0, Unclear
	return true
}

// compare judges an observation of a target that only we should write. was is what it showed before, as far as it is
// known.
func (f *fold) compare(t *Target, d *journal.Watch, was *journal.LeaderInfo) {
	intent := f.c.Intent
	if intent == nil || intent.Leader == nil {
		f.compareAbsence(t, d, was)
		return
	}
	fenced := d.Sequence != 0 && d.Sequence >= t.Pushed
	if sameLeader(d.Entry, intent.Leader) && fenced {
		if t.Pushed == intent.Sequence {
			t.inSync(f.v.time)
		}
		return
	}
	if t.Due && (t.Pushed == 0 || t.Pushed != intent.Sequence && intent.precededBy(t, d)) {
		return // what stood there before the write that is still to come
	}
	if t.Due && t.State == Drifted && equal(d.Entry, was) {
		return // the drift that is known
	}
	f.drift(t, d.Target)
}

// precededBy says whether a target that waits for this intent shows one from before it.
func (i *Intent) precededBy(t *Target, d *journal.Watch) bool {
	return sameLeader(d.Entry, t.Shows) || sameLeader(d.Entry, i.Before) || t.Pushed < d.Sequence && d.Sequence < i.Sequence
}

// compareAbsence judges an observation while nothing is to be shown.
func (f *fold) compareAbsence(t *Target, d *journal.Watch, was *journal.LeaderInfo) {
	intent := f.c.Intent
	if intent == nil {
		t.State = "" // whatever stands there, nothing of ours is missing
	}
	switch {
	case d.Entry == nil:
		if intent != nil && t.Pushed == intent.Sequence {
			t.inSync(f.v.time)
		}
	case intent != nil && (t.Due || t.precedes(intent)):
		t.due(f.v.time) // ours, from before the withdrawal
	case !equal(d.Entry, was): // noted once, not whenever something else in the object changes
		f.foreignEntry(t, d.Target)
	}
}

// precedes says whether what a target shows has the sequence of an intent before this one.
func (t *Target) precedes(i *Intent) bool { return t.Fence != 0 && t.Fence < i.Sequence }

func (f *fold) foreignEntry(t *Target, target string) {
	f.anomaly(&f.c.Anomalies, "foreign-entry",
		fmt.Sprintf("%s shows %s of session %s, which no confirmation set", target, t.Entry.Address, t.Entry.Session))
}

// overwritten judges what was seen after our write and told before its acknowledgement.
func (f *fold) overwritten(t *Target, target string) {
	intent := f.c.Intent
	switch {
	case intent.Leader != nil && t.State != Drifted:
		f.drift(t, target)
	case intent.Leader == nil && !t.precedes(intent):
		t.Due = false
		t.inSync(f.v.time)
		f.foreignEntry(t, target)
	}
}

// drift notes what a target shows by somebody else's doing, and has it written again.
func (f *fold) drift(t *Target, target string) {
	f.driftAnomaly(t, target)
	t.due(f.v.time)
	t.State = Drifted
	t.Drifts = newest(append(t.Drifts, momentOf(f.v.time)), driftLimit)
}

func (f *fold) driftAnomaly(t *Target, target string) {
	t.DriftTotal++
	what := "nothing"
	if t.Entry != nil {
		what = fmt.Sprintf("%s of session %s", t.Entry.Address, t.Entry.Session)
	}
	f.anomaly(&f.c.Anomalies, "drift", fmt.Sprintf("%s was seen to show %s at revision %d, where sequence %d should stand",
		target, what, t.Revision, f.c.Intent.Sequence), f.c.Intent.Sequence)
}

const driftLimit = 3

// guarded judges an observation of a system's own object, which publishes by itself.
func (f *fold) guarded(t *Target, d *journal.Watch) Result {
	c := f.c
	if d.Entry != nil {
		t.ErasedAt, t.Due = time.Time{}, false
		return f.shown(t, d)
	}
	switch {
	case c.Leader() == nil:
	case !c.holdsLock(t):
		t.letBe()
	case t.ErasedAt.IsZero():
		f.driftAnomaly(t, d.Target)
		t.out(f.v.time, Drifted)
		t.ErasedAt = f.v.time
		t.Due = f.g.Policy.OnErase.For(c.Name) == policy.Restore
	default:
		t.State = Drifted // seen again after a gap
	}
	return f.noted()
}

// holdsLock says whether the lock that guards a target was last seen with the term's holder.
func (c *Component) holdsLock(t *Target) bool {
	return c.Term != nil && t.Holder != "" && t.Holder == c.Term.Candidate
}

// letBe leaves a guarded target to the system, whose lock has passed on.
func (t *Target) letBe() {
	t.State, t.ErasedAt, t.Due, t.OutSince, t.SyncSince = Unclear, time.Time{}, false, time.Time{}, time.Time{}
}

// letErasuresBe gives up every repair that a change of terms has left without the lock's holder.
func (f *fold) letErasuresBe() {
	for i := range f.g.Targets {
		if !f.g.Targets[i].Guarded {
			continue
		}
		if t := f.c.Targets[f.g.Targets[i].Name]; t != nil && !t.ErasedAt.IsZero() && !f.c.holdsLock(t) {
			t.letBe()
		}
	}
}

// shown judges a non-empty entry of a guarded target, and adopts it if it is the lock holder's own news.
func (f *fold) shown(t *Target, d *journal.Watch) Result {
	c, e := f.c, d.Entry
	if c.Leader() != nil && sameLeader(e, c.Leader()) {
		t.Pushed, t.Shows = c.Intent.Sequence, c.Intent.Leader
		t.inSync(f.v.time)
		return f.noted()
	}
	open := c.Term != nil && c.Term.Session == e.Session
	switch {
	case d.Holder == "", e.Candidate != "" && e.Candidate != d.Holder: // nobody's word
	case open && d.Holder != c.Term.Candidate, !open && c.session(e.Session) != nil: // the word of one who leads no more
	case c.Intent != nil && c.Intent.Leader == nil && sameLeader(e, c.Intent.Before): // what was withdrawn stands there still
	case !f.confirmable(d): // no session or address that could be told to anybody
	default:
		f.adopt(t, d, open)
		return f.applied()
	}
	return f.noted()
}

// confirmable says whether an observation would do as a confirmation. What others write need not.
func (f *fold) confirmable(d *journal.Watch) bool {
	e := f.r.Event
	e.Data = &journal.Confirm{
		Session: d.Entry.Session, Candidate: d.Holder, Address: d.Entry.Address, Properties: d.Entry.Properties, Attempt: 1,
	}
	return e.Validate() == nil
}

// adopt makes an observation of a guarded target a grant and a confirm in one.
func (f *fold) adopt(t *Target, d *journal.Watch, open bool) {
	c, e := f.c, d.Entry
	if old := c.Leader(); open && old != nil && old.Session == e.Session {
		f.anomaly(&c.Anomalies, "address-changed", fmt.Sprintf("from %s to %s under one session", old.Address, e.Address), c.Intent.Sequence)
	}
	if !open {
		f.supersede(d.Holder, true)
		f.open(d.Holder, e.Session)
		f.letErasuresBe()
	}
	c.Term.Confirmed = true
	f.intend(&journal.LeaderInfo{Session: e.Session, Candidate: c.Term.Candidate, Address: e.Address, Properties: e.Properties})
	t.Pushed, t.Shows, t.Attempts = c.Intent.Sequence, c.Intent.Leader, 0
	t.inSync(f.v.time)
}
