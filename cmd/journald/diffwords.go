package main

import (
	"fmt"
	"time"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/compare"
)

// mostExplained is how many differences are told in words; the table has all.
const mostExplained = 20

// explain says of each difference what stands there, what must, since when, and what comes next.
func (d *differ) explain(rows []api.DiffRow, now time.Time) {
	told := 0
	for i := range rows {
		r := &rows[i]
		if r.State != compare.Differs && r.State != api.Unreachable {
			continue
		}
		if told++; told > mostExplained {
			fmt.Fprintln(d.err, "… and so on; the rest is in the table.")
			return
		}
		fmt.Fprintf(d.err, "%s/%s at %s: %s\n", r.Group, r.Component, r.Target, diffWords(r, now))
	}
}

func diffWords(r *api.DiffRow, now time.Time) string {
	if r.State == api.Unreachable {
		return "it can't be read, so what it shows is not known: " + clean(r.Error)
	}
	text := "it shows " + leaderWords(r.Shows.Leader)
	switch r.Reason {
	case compare.LowerSequence:
		text += fmt.Sprintf(", which is right, with sequence %d, which must be %d or higher", r.Shows.Sequence, r.Should.Sequence)
	case compare.Ahead:
		text += fmt.Sprintf(" with sequence %d, which this journal has not reached; it must show %s",
			r.Shows.Sequence, leaderWords(r.Should.Leader))
	default:
		text += ", and must show " + leaderWords(r.Should.Leader)
		if r.Should.Sequence > 0 {
			text += fmt.Sprintf(" by record %d", r.Should.Sequence)
		}
	}
	if r.Push != nil && !r.Push.OutSince.IsZero() {
		text += ". Out of sync for " + age(r.Push.OutSince, now)
	}
	return text + ". " + nextWords(r, now)
}

// nextWords say what becomes of a difference.
func nextWords(r *api.DiffRow, now time.Time) string {
	switch p := r.Push; {
	case r.Reason == compare.Ahead:
		return "Nothing is written over it: another journal wrote it, or this one before it was restored from a copy. " +
			"Once you know which, take the sequence away there."
	case r.Kind == api.BuiltIn:
		return "It is written with the component's next change, or when an instance takes over."
	case p != nil && p.Due && (p.Error == "" || p.Attempts == 0):
		return "A push is due."
	case p != nil && p.Due:
		return fmt.Sprintf("Attempt %d failed%s: %s.", p.Attempts, againWords(p.Permanent, p.FailedAt, p.RetryAfter, now), clean(p.Error))
	case r.Guarded:
		return "It is the system's own object: only what is erased while the lock stays with the leader is put back."
	case r.Reason == compare.Foreign:
		return "No confirmation set it, so it is left alone: take it away there, or confirm it."
	case p != nil && p.State == view.Drifted:
		return "It is left alone until something changes: " + clean(first(p.Error, "the target shows a higher sequence")) + "."
	}
	return "Whoever changed it did so just now, or the watch on it is broken, of which journald's log tells."
}

// againWords say when a failed attempt is followed by the next.
func againWords(permanent bool, failed time.Time, after policy.Duration, now time.Time) string {
	wait := failed.Add(time.Duration(after)).Sub(now)
	switch {
	case failed.IsZero() || after == 0:
		return ""
	case wait <= 0:
		return " and is tried again now"
	case permanent:
		return " for good, unless somebody mends it; it is tried again in " + span(wait)
	}
	return " and is tried again in " + span(wait)
}

func leaderWords(l *journal.LeaderInfo) string {
	switch {
	case l == nil:
		return "nobody"
	case l.Candidate != "" && l.Candidate != l.Address:
		return fmt.Sprintf("%s (session %s, candidate %s)", dash(clean(l.Address)), clean(l.Session), clean(l.Candidate))
	}
	return fmt.Sprintf("%s (session %s)", dash(clean(l.Address)), clean(l.Session))
}
