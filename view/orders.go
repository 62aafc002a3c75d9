package view

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// transfer takes an operator's order to hand leadership over, or refuses it with the reason.
func (f *fold) transfer(d *journal.Transfer) Result {
	if why := f.g.refuse(f.c, d.To, d.Force, f.v.time); why != "" {
		return f.result(Invalid, why)
	}
	f.c.handing().Transfer = &Transfer{Sequence: f.r.Sequence, To: d.To, Force: d.Force, Reason: d.Reason}
	return f.applied()
}

// refuse says why leadership can't be handed over as ordered, or "". An empty to is whoever is best.
func (g *Group) refuse(c *Component, to string, force bool, now time.Time) string {
	k := g.Candidates[to]
	switch {
	case g.Paused:
		return "the group is paused"
	case c.Term == nil:
		return "nobody leads: there is nothing to hand over"
	case c.Term.Yield != nil:
		return "the holder has been told to yield already"
	case to == c.Term.Candidate:
		return to + " leads already"
	case to == "" && g.best(c, now) == "":
		return "no candidate is fit to take over"
	case to == "":
		return ""
	case k == nil || !k.mayLead(c):
		return to + " has not joined for this component"
	case !force && !g.fit(c, k, now):
		return to + " is not fit to take over; force hands over all the same"
	}
	return ""
}

func (f *fold) exclude(d *journal.Exclude) Result {
	k := f.candidate(d.Candidate)
	k.Excluded, k.ExcludedUntil, k.Heard = true, d.Until.UTC(), f.r.Sequence
	f.concern(k)
	f.self = true
	return f.applied()
}

func (f *fold) include(d *journal.Include) Result {
	if why := f.voidIfDecided(d.Decision); why != "" {
		return f.result(Void, why)
	}
	k := f.g.Candidates[d.Candidate]
	if k == nil || !k.Excluded {
		return f.result(Duplicate, d.Candidate+" is not excluded")
	}
	k.Excluded, k.ExcludedUntil = false, time.Time{}
	f.concern(k)
	f.self = true
	return f.applied()
}

func (f *fold) pause(d *journal.Pause) Result {
	f.g.Paused, f.g.PausedTill = true, d.Until.UTC()
	f.wide, f.self = true, true
	return f.applied()
}

func (f *fold) resume(d *journal.Resume) Result {
	if why := f.voidIfDecided(d.Decision); why != "" {
		return f.result(Void, why)
	}
	if !f.g.Paused {
		return f.result(Duplicate, "the group is not paused")
	}
	f.g.Paused, f.g.PausedTill = false, time.Time{}
	f.wide, f.self = true, true
	return f.applied()
}

// policy sets the rules, and the targets if it names any, from here on. A projector's comes from its configuration and
// rests on nothing in the group, so that only a newer takeover makes it void: a busy group would never get its rules.
func (f *fold) policy(d *journal.Policy) Result {
	if d.Decision != nil && d.Decision.Projector != f.v.projector {
		return f.result(Void, "its projector is not the one that took over last")
	}
	if d.Decision != nil && f.g.FromFile.Says(d) {
		return f.result(Duplicate, "the configuration has said so before")
	}
	if d.Decision != nil && f.g.FromFile != nil && d.Decision.Basis <= f.g.FromFile.Basis {
		return f.result(Stale, "the configuration has said otherwise since")
	}
	f.g.Policy, f.g.Configured = d.Policy, f.r.Sequence
	if d.Targets != nil {
		f.retarget(*d.Targets)
	}
	if d.Decision != nil {
		f.g.FromFile = &FromFile{Policy: f.g.Policy, Targets: f.g.Targets, Basis: d.Decision.Basis}
	}
	f.wide = true
	return f.applied()
}

// Says tells whether a policy record repeats what the configuration said last, for which it may be nil.
func (c *FromFile) Says(d *journal.Policy) bool {
	return c != nil && d.Targets != nil && samePolicy(c.Policy, d.Policy) && slices.EqualFunc(c.Targets, *d.Targets, sameTarget)
}

// samePolicy compares what the policies mean: a map without entries is no map.
func samePolicy(a, b policy.Policy) bool {
	same := maps.Equal(a.OnErase.Patterns, b.OnErase.Patterns)
	a.OnErase.Patterns, b.OnErase.Patterns = nil, nil
	return same && reflect.DeepEqual(a, b)
}

// sameTarget compares what the descriptions mean: an empty list of components is no list.
func sameTarget(a, b journal.Target) bool {
	same := slices.Equal(a.Components, b.Components)
	a.Components, b.Components = nil, nil
	return same && reflect.DeepEqual(a, b)
}

// retarget begins anew for every target that is new or described otherwise, and ends those that are gone. What a
// target that is gone shows is left as it is.
func (f *fold) retarget(targets []journal.Target) {
	old := f.g.Targets
	f.g.Targets = slices.Clone(targets)
	for _, spec := range old {
		if now := f.g.TargetSpec(spec.Name); now == nil || !sameTarget(*now, spec) {
			for _, c := range f.g.Components {
				delete(c.Targets, spec.Name)
			}
		}
	}
	for _, c := range f.g.Components {
		f.showEverywhere(c)
	}
}

// showEverywhere has the intent written wherever nothing is known of it.
func (f *fold) showEverywhere(c *Component) {
	if c.Intent == nil {
		return
	}
	for i := range f.g.Targets {
		spec := &f.g.Targets[i]
		if c.Targets[spec.Name] != nil || spec.Observe || spec.Guarded {
			continue
		}
		if t := c.target(spec); t != nil {
			t.due(f.v.time)
		}
	}
}

func (f *fold) yield(d *journal.Yield) Result {
	c := f.c
	if why := f.void(&d.Decision); why != "" {
		return f.result(Void, why)
	}
	t := c.Term
	if t == nil || t.Session != d.Session || t.Yield != nil {
		return f.result(Stale, "the session is not open, or was told already")
	}
	h := c.handing()
	order := h.Transfer
	t.Yield = &Yield{Sequence: f.r.Sequence, Reason: d.Reason, To: d.To, Since: f.v.time, Ordered: order != nil}
	if order != nil {
		t.Yield.Forced = order.Force
	} else if !t.Unfit {
		h.Yields = newest(append(h.Yields, momentOf(f.v.time)), min(f.g.Policy.Health.MaxYields, maxTimes))
	}
	h.Transfer, t.Unfit, t.Held = nil, false, 0
	return f.applied()
}

func (f *fold) hold(d *journal.Hold) Result {
	if why := f.void(&d.Decision); why != "" {
		return f.result(Void, why)
	}
	t := f.c.Term
	if t == nil || t.Session != d.Session || t.Yield != nil {
		return f.result(Stale, "the session is not open, or was told to yield")
	}
	t.Held = f.r.Sequence
	return f.applied()
}

func (f *fold) alerts() *[]Alert {
	if f.c != nil {
		return &f.c.Alerts
	}
	return &f.g.Alerts
}

func (f *fold) alert(d *journal.Alert) Result {
	if why := f.void(&d.Decision); why != "" {
		return f.result(Void, why)
	}
	list := f.alerts()
	if active(*list, d.Name) {
		return f.result(Duplicate, "")
	}
	if d.Name == yieldBlocked && f.c != nil && (f.c.Term == nil || f.c.Term.Held == 0) {
		return f.result(Void, "nobody holds on to a term: the hold decided with it had no force")
	}
	*list = append(*list, Alert{Name: d.Name, Reason: d.Reason, Sequence: f.r.Sequence, Since: f.v.time})
	f.wide = f.c == nil
	return f.applied()
}

func (f *fold) clear(d *journal.Clear) Result {
	if why := f.void(&d.Decision); why != "" {
		return f.result(Void, why)
	}
	list := f.alerts()
	if !active(*list, d.Name) {
		return f.result(Duplicate, "")
	}
	*list = slices.DeleteFunc(*list, func(a Alert) bool { return a.Name == d.Name })
	if f.c != nil {
		f.c.cleared(d.Name)
	}
	f.wide = f.c == nil
	return f.applied()
}

// cleared has what led to an alert begin anew.
func (c *Component) cleared(alert string) {
	switch {
	case alert == publishedDrift:
		for _, t := range c.Targets {
			t.Drifts = nil
		}
	case alert == yieldBlocked && c.Term != nil:
		c.Term.Held = 0
	}
}

// active says whether an alert of that name is.
func active(list []Alert, name string) bool {
	return slices.ContainsFunc(list, func(a Alert) bool { return a.Name == name })
}

// String is for logs and tests.
func (a Alert) String() string { return fmt.Sprintf("%s: %s", a.Name, a.Reason) }
