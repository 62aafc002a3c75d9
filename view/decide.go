package view

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/leadership-journal/journald/journal"
)

// Proposal is what is to be decided about one component, or about its group: one event, or a pair that is appended in
// one batch. It has force only while the group stands at Basis.
type Proposal struct {
	Group     string
	Component string // empty for the group itself
	Basis     uint64
	Cause     []uint64
	Data      []journal.Data
}

// Decide says what is to be decided at now, at most one proposal for each group: the next one rests on what becomes of
// the first. Groups that are busy, because a proposal is on its way to the journal, are passed over.
//
// now is the log's clock: the newest record's time and what has passed since it was received; it never goes back.
// live is what the caller has seen of the candidates' liveness; of what changes there [View.Attend] has to be told.
// Only components that a record touched, or that have waited for this moment, are looked at, so that the cost is that of
// what has changed. A proposal is made again until a record has made it needless.
func (v *View) Decide(now time.Time, live Liveness, busy func(group string) bool) []Proposal {
	v.agenda.expire(now)
	var all []Proposal
	for _, g := range v.agenda.ready(busy) {
		if p := v.decideGroup(g, now, live); p != nil {
			all = append(all, *p)
		}
	}
	return all
}

// Wake is when time alone next gives something to decide; false where it never does.
func (v *View) Wake() (time.Time, bool) {
	if len(v.agenda.timers) == 0 {
		return time.Time{}, false
	}
	return v.agenda.timers[0].at, true
}

// Reconsider has everything of a group looked at anew, as after a decision that did not reach the journal.
func (v *View) Reconsider(group string) {
	g := v.groups[group]
	if g == nil {
		return
	}
	v.agenda.touch(g, nil)
	for _, c := range g.Components {
		v.agenda.touch(g, c)
	}
}

func (v *View) decideGroup(g *Group, now time.Time, live Liveness) *Proposal {
	for c, ok := g.agenda.next(); ok; c, ok = g.agenda.next() {
		d := decision{g: g, c: c, now: now, live: live}
		if c == nil {
			d.ofGroup()
		} else {
			d.ofComponent()
		}
		if d.data != nil {
			p := &Proposal{Group: g.Name, Basis: g.Version, Cause: d.cause, Data: d.data}
			if c != nil {
				p.Component = c.Name
			}
			return p
		}
		v.agenda.settle(g, c, d.wake)
	}
	return nil
}

// decision looks at one component, or at the group itself where there is none, once.
type decision struct {
	g    *Group
	c    *Component
	now  time.Time
	live Liveness

	data  []journal.Data
	cause []uint64
	wake  time.Time
}

// ofGroup applies the rules that concern the group itself, until one of them has something to say.
func (d *decision) ofGroup() {
	for _, rule := range [...]func(*decision){(*decision).untilNow, (*decision).fallenSilent, (*decision).observersSilent} {
		if rule(d); d.data != nil {
			return
		}
	}
}

// untilNow ends what was ordered until now.
func (d *decision) untilNow() {
	if d.g.Paused && !d.g.PausedTill.IsZero() && d.passed(d.g.PausedTill) {
		d.data = []journal.Data{&journal.Resume{Order: byTime("the pause was until " + stamp(d.g.PausedTill)), Decision: &journal.Decision{}}}
		return
	}
	var over *Candidate
	for _, k := range d.g.Candidates {
		if k.Excluded && !k.ExcludedUntil.IsZero() && d.passed(k.ExcludedUntil) && (over == nil || k.Name < over.Name) {
			over = k
		}
	}
	if over != nil {
		order := byTime("the exclusion was until " + stamp(over.ExcludedUntil))
		d.data = []journal.Data{&journal.Include{Candidate: over.Name, Order: order, Decision: &journal.Decision{}}}
	}
}

func byTime(reason string) journal.Order { return journal.Order{Actor: "journald", Reason: reason} }

// ofComponent applies the rules in the order of the contract's table, until one of them has something to say.
func (d *decision) ofComponent() {
	for _, rule := range [...]func(*decision){
		(*decision).elect, (*decision).yields, (*decision).unblocked, (*decision).leaderSilent, (*decision).noLeader,
		(*decision).grantedUnconfirmed, (*decision).leaderFlapping, (*decision).overlappingTerms, (*decision).publishedDrift,
		(*decision).targetFailing, (*decision).soleUnhealthy,
	} {
		if rule(d); d.data != nil {
			return
		}
	}
}

// The names of alerts.
const (
	noLeader           = "NoLeader"
	grantedUnconfirmed = "GrantedUnconfirmed"
	leaderFlapping     = "LeaderFlapping"
	overlappingTerms   = "OverlappingTerms"
	publishedDrift     = "PublishedDrift"
	targetFailing      = "TargetFailing"
	yieldBlocked       = "YieldBlocked"
	leaderSilent       = "LeaderSilent"
	observersSilent    = "ObserversSilent"
	soleUnhealthy      = "SoleUnhealthy"
)

// noLeader is row 6.
func (d *decision) noLeader() {
	since := d.c.LeaderlessSince
	if d.c.Term != nil && since.IsZero() {
		since = d.lapsedSince()
	}
	if since.IsZero() {
		d.ended(noLeader, "somebody leads, or nobody is there to", 0)
	} else if d.passed(since.Add(time.Duration(d.g.Policy.LeaderlessAfter))) {
		d.begun(noLeader, d.c.Epoch, func() string { return "nobody has led since " + stamp(since) })
	} else {
		d.ended(noLeader, "somebody led in between", d.c.Epoch)
	}
}

// grantedUnconfirmed is row 7, as far as it concerns every election; what a managed one does is moveOn.
func (d *decision) grantedUnconfirmed() {
	t := d.c.Term
	if t == nil || t.Confirmed {
		d.ended(grantedUnconfirmed, "the term is confirmed, or over", 0)
	} else if d.passed(t.Since.Add(time.Duration(d.g.Policy.ConfirmWithin))) {
		d.begun(grantedUnconfirmed, t.Epoch, func() string {
			return t.Candidate + " was granted leadership and has not confirmed since " + stamp(t.Since)
		})
	} else {
		d.ended(grantedUnconfirmed, "a newer term has not waited for so long", t.Epoch)
	}
}

// leaderFlapping is row 9.
func (d *decision) leaderFlapping() {
	n := len(d.c.Terms) - d.g.Policy.Flapping - 1
	if n >= 0 && !d.passed(d.c.Terms[n].time().Add(time.Duration(d.g.Policy.Health.Window))) {
		d.begun(leaderFlapping, d.c.Epoch, func() string {
			return fmt.Sprintf("more than %d terms within %s", d.g.Policy.Flapping, d.g.Policy.Health.Window)
		})
		return
	}
	d.ended(leaderFlapping, "no more terms than are tolerated", d.c.Epoch)
}

// overlappingTerms is row 9a.
func (d *decision) overlappingTerms() {
	for _, o := range d.c.handover().Overlaps {
		if !d.passed(o.Since.Add(time.Duration(d.g.Policy.Health.Window))) {
			d.begun(overlappingTerms, d.c.Epoch, func() string {
				return "session " + o.Session + " was superseded by another holder's and never revoked"
			})
			return
		}
	}
	d.ended(overlappingTerms, "the older session was revoked, or is long past", 0)
}

// driftPatience is how long a target may be out of sync, and must be in sync again.
const driftPatience = time.Minute

// publishedDrift is row 9b. It ends by other signs than it begins by.
func (d *decision) publishedDrift() {
	quiet, out := true, ""
	for i := range d.g.Targets {
		name := d.g.Targets[i].Name
		t := d.c.Targets[name]
		if t == nil {
			continue
		}
		if !t.OutSince.IsZero() {
			quiet = false
		} else if !t.SyncSince.IsZero() && active(d.c.Alerts, publishedDrift) && !d.passed(t.SyncSince.Add(driftPatience)) {
			quiet = false
		}
		if out == "" && d.outOfSync(t) {
			out = name
		}
	}
	if quiet {
		d.ended(publishedDrift, "every target has been in sync for "+driftPatience.String(), d.sequence())
	}
	if out != "" {
		d.begun(publishedDrift, d.sequence(), func() string { return d.driftOf(out) })
	}
}

// outOfSync says whether a target has been out of sync for too long, or too often.
func (d *decision) outOfSync(t *Target) bool {
	if !t.OutSince.IsZero() && d.passed(t.OutSince.Add(driftPatience)) {
		return true
	}
	return len(t.Drifts) == driftLimit && d.now.Sub(t.Drifts[0].time()) < time.Duration(d.g.Policy.Health.Window)
}

func (d *decision) driftOf(target string) string {
	if t := d.c.Targets[target]; !t.OutSince.IsZero() && d.passed(t.OutSince.Add(driftPatience)) {
		return fmt.Sprintf("%s has been out of sync since %s", target, stamp(t.OutSince))
	}
	return fmt.Sprintf("%s was changed by others %d times within %s", target, driftLimit, d.g.Policy.Health.Window)
}

// targetFailing is row 9c.
func (d *decision) targetFailing() {
	for i := range d.g.Targets {
		name := d.g.Targets[i].Name
		if t := d.c.Targets[name]; t != nil && t.Due && t.Permanent {
			d.begun(targetFailing, d.sequence(), func() string { return name + ": " + t.Error })
			return
		}
	}
	d.ended(targetFailing, "no target refuses the write any more", d.sequence())
}

func (d *decision) sequence() uint64 {
	if d.c.Intent == nil {
		return d.c.Epoch
	}
	return d.c.Intent.Sequence
}

// begun raises the alert of a condition that holds, unless it is raised.
func (d *decision) begun(name string, cause uint64, reason func() string) {
	if !active(d.alerts(), name) {
		d.data, d.cause = []journal.Data{&journal.Alert{Name: name, Reason: reason()}}, causes(cause)
	}
}

// ended clears the alert of a condition that does not hold, if it is raised.
func (d *decision) ended(name, reason string, cause uint64) {
	if active(d.alerts(), name) {
		d.data, d.cause = []journal.Data{&journal.Clear{Name: name, Reason: reason}}, causes(cause)
	}
}

// alerts are those of the component, or of the group.
func (d *decision) alerts() []Alert {
	if d.c == nil {
		return d.g.Alerts
	}
	return d.c.Alerts
}

func causes(sequence uint64) []uint64 {
	if sequence == 0 {
		return nil
	}
	return []uint64{sequence}
}

// passed says whether a moment is over, and has the component looked at again when it is.
func (d *decision) passed(at time.Time) bool {
	if !at.After(d.now) {
		return true
	}
	if d.wake.IsZero() || at.Before(d.wake) {
		d.wake = at
	}
	return false
}

// Events are the proposal as events of a projector; each carries the basis that holds once those before it are folded.
// Their ids follow from the cause, so that the same decision made twice by one projector is one record; its epoch is
// part of them, since what it decided before it was replaced is void.
func (p *Proposal) Events(source string, projector uint64, at time.Time) []journal.Event {
	all := make([]journal.Event, 0, len(p.Data))
	for i, data := range p.Data {
		d := journal.Decision{Projector: projector, Basis: p.Basis + uint64(i), Cause: p.Cause}
		about := stampDecision(data, d)
		all = append(all, journal.Event{
			ID: p.id(data.Kind(), about, d), Source: source,
			Group: p.Group, Component: p.Component, Time: at, Data: data,
		})
	}
	return all
}

// stampDecision fills in what every decision carries and says what tells two decisions of one kind apart.
func stampDecision(data journal.Data, d journal.Decision) string {
	switch e := data.(type) {
	case *journal.Alert:
		e.Decision = d
		return e.Name
	case *journal.Clear:
		e.Decision = d
		return e.Name
	case *journal.Yield:
		e.Decision = d
		return e.Session
	case *journal.Hold:
		e.Decision = d
		return e.Session
	case *journal.Stale:
		e.Decision = d
		return e.Candidate + "/" + e.Incarnation
	case *journal.Grant:
		e.Decision = &d
		return e.Session
	case *journal.Revoke:
		e.Decision = &d
		return e.Session
	case *journal.Include:
		e.Decision = &d
		return e.Candidate
	case *journal.Resume:
		e.Decision = &d
	case *journal.Policy:
		e.Decision = &d
	}
	return ""
}

func (p *Proposal) id(kind, about string, d journal.Decision) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d\x00%d", kind, p.Group, p.Component, about, d.Basis, d.Projector))
	return kind + "-" + hex.EncodeToString(sum[:16])
}

func stamp(t time.Time) string { return t.Format(time.RFC3339Nano) }
