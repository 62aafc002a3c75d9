package view

import (
	"time"

	"github.com/leadership-journal/journald/journal"
)

// push takes note of what came of one write.
func (f *fold) push(d *journal.Push) Result {
	if d.Projector != f.v.projector {
		return f.result(Void, "its projector is not the one that took over last")
	}
	spec, t := f.g.target(f.c, d.Target)
	if t == nil || f.c.Intent == nil {
		return f.result(Superseded, "the group has no such target, or nothing to show there, any more")
	}
	if d.Intent != f.c.Intent.Sequence {
		f.pushedOlder(t, d)
		return f.result(Superseded, "the intent is not the newest")
	}
	if d.Attempt <= t.Attempts {
		return f.result(Duplicate, "the attempt is not above the last one seen")
	}
	t.Attempts, t.Error, t.Permanent, t.FailedAt, t.RetryAfter = d.Attempt, d.Error, d.Permanent, time.Time{}, d.RetryAfter
	if d.Outcome != journal.OK {
		t.FailedAt = f.v.time
	}
	switch d.Outcome {
	case journal.OK:
		f.pushed(spec, t, d)
	case journal.Superseded:
		t.out(f.v.time, Drifted)
		t.Due = false // the target shows a newer sequence than any of ours: it is left alone until something changes
		return f.result(Superseded, "the target shows a higher sequence")
	case journal.Failed:
		t.out(f.v.time, Failing)
		t.Due = true
	case journal.Unknown:
		t.out(f.v.time, Unclear)
		t.Due = true
	}
	return f.noted()
}

// pushed notes that the newest intent was written, and is shown unless something else was seen at a later revision.
func (f *fold) pushed(spec *journal.Target, t *Target, d *journal.Push) {
	intent := f.c.Intent
	t.Pushed, t.Shows = d.Intent, intent.Leader
	switch {
	case d.Revision >= t.Revision || t.stands(intent):
	case spec.Guarded:
		return // the system has written since, which was judged when it was seen
	default:
		f.overwritten(t, d.Target)
		return
	}
	t.wrote(d.Revision, intent.Sequence, intent.Leader)
	t.Due, t.ErasedAt = false, time.Time{}
	t.inSync(f.v.time)
	if intent.Leader != nil && !f.c.anyDue() {
		intent.Before = nil // nothing is left that may still show it
	}
}

// stands says whether what a target was known to show last is the intent.
func (t *Target) stands(i *Intent) bool {
	return sameLeader(t.Entry, i.Leader) && (i.Leader == nil || t.Fence >= i.Sequence)
}

// wrote notes what a write left, unless something newer is known.
func (t *Target) wrote(revision, sequence uint64, leader *journal.LeaderInfo) {
	if revision >= t.Revision {
		t.Revision, t.Fence, t.Entry = revision, sequence, leader
	}
}

func (c *Component) anyDue() bool {
	for _, t := range c.Targets {
		if t.Due {
			return true
		}
	}
	return false
}

// pushedOlder notes that a write of the intent before the newest was acknowledged: the newest one is still due. Of a
// write from before that it is not known any more what it showed.
func (f *fold) pushedOlder(t *Target, d *journal.Push) {
	if d.Outcome != journal.OK || d.Intent <= t.Pushed {
		return
	}
	if d.Intent == f.c.Intent.Replaced {
		t.Pushed, t.Shows = d.Intent, f.c.Intent.Before
		t.wrote(d.Revision, t.Pushed, t.Shows)
	}
}

// due has the newest intent written.
func (t *Target) due(now time.Time) {
	t.out(now, Pending)
	t.Due = true
}

// out takes the target out of sync.
func (t *Target) out(now time.Time, state string) {
	t.State, t.SyncSince = state, time.Time{}
	if t.OutSince.IsZero() {
		t.OutSince = now
	}
}

// inSync ends whatever was wrong.
func (t *Target) inSync(now time.Time) {
	if t.State != InSync {
		t.State = InSync
		t.Error, t.Permanent, t.FailedAt, t.RetryAfter = "", false, time.Time{}, 0
	}
	if t.SyncSince.IsZero() {
		t.SyncSince = now
	}
	t.OutSince = time.Time{}
}
