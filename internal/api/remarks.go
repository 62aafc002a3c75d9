package api

import (
	"fmt"
	"strings"
	"time"
)

// Remarks are what a person has to know of a component beside who leads it, in words.
func (r *Row) Remarks() []string {
	var all []string
	for _, a := range r.Alerts {
		all = append(all, a.Name+": "+a.Reason)
	}
	if y := r.Yield; y != nil {
		all = append(all, "told to yield"+prefixed(" to ", y.To)+": "+y.Reason)
	}
	if r.Released {
		all = append(all, "released: the holder has stopped")
	}
	for _, t := range r.Targets {
		if t.State != "in-sync" && t.State != "observed" {
			all = append(all, t.Name+" "+t.State)
		}
	}
	return all
}

// Remarks are what a person has to know of a group beside its components, in words.
func (g *GroupRow) Remarks() []string {
	var all []string
	if g.Paused {
		all = append(all, "paused"+until(g.PausedTill, "it is resumed"))
	}
	for _, a := range g.Alerts {
		all = append(all, a.Name+": "+a.Reason)
	}
	return all
}

// Remarks are what keeps a candidate from being chosen, and what its checks say, in words.
func (k *CandidateRow) Remarks() []string {
	var all []string
	add := func(holds bool, format string, args ...any) {
		if holds {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(!k.Joined, "not joined")
	add(k.Excluded, "excluded%s", until(k.ExcludedUntil, "it is included"))
	add(k.HeldDown, "held down%s", until(k.HeldDownUntil, "it passes"))
	add(!k.SilentSince.IsZero(), "silent since %s", stamp(k.SilentSince))
	add(len(k.Yields) > 0, "told to give up %s", strings.Join(k.Yields, ","))
	add(len(k.Stopping) > 0, "not known to have stopped %s", strings.Join(k.Stopping, ","))
	add(k.Failures > 0, "%s: %s", k.Check, k.Reason)
	return all
}

// Condition is a candidate's health, with how often a check failed in a row.
func (k *CandidateRow) Condition() string {
	if k.Failures == 0 {
		return k.Health
	}
	return fmt.Sprintf("%s (%d failed)", k.Health, k.Failures)
}

func until(at time.Time, event string) string {
	if at.IsZero() {
		return " until " + event
	}
	return " until " + stamp(at)
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
