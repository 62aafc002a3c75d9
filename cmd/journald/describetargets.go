package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// teller writes one line of what is described.
type teller = func(key, format string, args ...any)

// describeTargets says of each target how far it is, what stands there as far as the view knows, and what went wrong.
func describeTargets(line teller, c *api.Component, now time.Time) {
	for i := range c.TargetSpecs {
		spec := &c.TargetSpecs[i]
		t := c.Targets[spec.Name]
		switch observed := slices.Contains(c.Observed, spec.Name); {
		case t == nil && observed:
			line("Target "+spec.Name, "%s, only observed, not seen yet", spec.Kind)
		case t == nil:
			line("Target "+spec.Name, "%s, nothing to show yet", spec.Kind)
		case observed:
			line("Target "+spec.Name, "%s, only observed", spec.Kind)
			describeSeen(line, "leads there", t)
		default:
			describeKept(line, spec, c.Intent, t, now)
		}
	}
}

// describeKept is about a target that must show the intent, nil where there is none.
func describeKept(line teller, spec *journal.Target, intent *view.Intent, t *view.Target, now time.Time) {
	state := cmp.Or(t.State, view.Pending)
	switch {
	case !t.OutSince.IsZero():
		state += ", out of sync for " + age(t.OutSince, now)
	case !t.SyncSince.IsZero():
		state += " for " + age(t.SyncSince, now)
	case intent == nil:
		state = "nothing to show yet"
	}
	line("Target "+spec.Name, "%s, %s", spec.Kind, state)
	describeSeen(line, "shows", t)
	line("  pushed", "%s", pushedWords(intent, t))
	if t.Error != "" {
		line("  last error", "%s", failureWords(t, now))
	}
	line("  drifted", "%d times", t.DriftTotal)
}

// describeSeen is about what stands in a target, by the newest push or observation.
func describeSeen(line teller, key string, t *view.Target) {
	if t.Revision == 0 {
		line("  "+key, "not known")
		return
	}
	text := fmt.Sprintf("%s, at revision %d", leaderWords(t.Entry), t.Revision)
	if t.Fence != 0 {
		text += fmt.Sprintf(" with sequence %d", t.Fence)
	}
	line("  "+key, "%s", text)
	if t.Holder != "" {
		line("  lock", "held by %s", clean(t.Holder))
	}
	if len(t.Participants) > 0 {
		line("  participants", "%s", clean(strings.Join(t.Participants, ", ")))
	}
}

func pushedWords(intent *view.Intent, t *view.Target) string {
	text := "nothing yet"
	if t.Pushed != 0 {
		text = fmt.Sprintf("record %d, %s", t.Pushed, leaderWords(t.Shows))
	}
	switch {
	case intent != nil && t.Pushed == intent.Sequence && !t.Due:
		return text + ", which is the newest"
	case intent != nil && t.Due:
		return fmt.Sprintf("%s; record %d is due", text, intent.Sequence)
	}
	return text
}

func failureWords(t *view.Target, now time.Time) string {
	if t.Attempts == 0 {
		return clean(t.Error) + " (before the newest intent)"
	}
	return fmt.Sprintf("attempt %d failed%s: %s", t.Attempts, againWords(t.Permanent, t.FailedAt, t.RetryAfter, now), clean(t.Error))
}
