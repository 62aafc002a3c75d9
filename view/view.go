// Package view folds the journal into the answer to "who leads, and where", and says what is to be decided from it.
//
// The view at sequence n is a pure function of records 1 to n: no clock, no randomness and no backend is read, so
// that a journal replayed a year later gives the same view, to the byte of its hash. What time or a backend caused
// stands in the journal as a record first. Time, where a rule needs it, is the record's own, made monotone.
//
// A View is not safe for concurrent use. What it hands out ([Group], [Component]) is its own state: to be read before
// the next Apply, never to be changed.
package view

import (
	"slices"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// Verdict is what applying a record did.
type Verdict string

// The verdicts.
const (
	Applied        Verdict = "applied"
	Duplicate      Verdict = "duplicate"       // said before, nothing changed
	Stale          Verdict = "stale"           // about something that is over, nothing changed but what anomalies note
	UnknownSession Verdict = "unknown-session" // of a session that was never granted
	Superseded     Verdict = "superseded"      // a push of an intent that is not the newest
	Void           Verdict = "void"            // a decision on a view that has moved, or by a projector that was replaced
	Invalid        Verdict = "invalid"         // no event of the contract, or an order that can't be carried out
)

// Result says what Apply did and to whom.
type Result struct {
	Verdict   Verdict
	Reason    string     // why, where the verdict alone does not say it
	Group     *Group     // nil for what concerns no group
	Component *Component // nil for what concerns the whole group
}

// View is the fold of the journal up to one sequence.
type View struct {
	sequence  uint64
	time      time.Time
	projector uint64
	instance  string
	groups    map[string]*Group

	agenda agenda
	folded fold // the one record that is being applied
}

// New is the view of an empty journal.
func New() *View {
	return &View{groups: map[string]*Group{}, agenda: newAgenda()}
}

// Sequence is that of the newest record applied.
func (v *View) Sequence() uint64 { return v.sequence }

// Time is the newest record's, made monotone.
func (v *View) Time() time.Time { return v.time }

// Projector is the epoch of the newest takeover and the instance that made it; 0 before the first.
func (v *View) Projector() (epoch uint64, instance string) { return v.projector, v.instance }

// Group is the state of one group, nil where the journal never spoke of it.
func (v *View) Group(name string) *Group { return v.groups[name] }

// Groups is every group by name. The map is the view's own.
func (v *View) Groups() map[string]*Group { return v.groups }

// Apply folds the next record. Records come in order of their sequences; that none is missing is for the log to see
// to. A record that changes nothing still moves Sequence and Time.
func (v *View) Apply(r *journal.Record) Result {
	v.sequence = r.Sequence
	if r.Time.After(v.time) {
		v.time = r.Time.UTC()
	}
	if r.Err != nil {
		return Result{Verdict: Invalid, Reason: r.Err.Error()}
	}
	switch d := r.Event.Data.(type) {
	case *journal.Takeover:
		v.projector, v.instance = r.Sequence, d.Instance
		return Result{Verdict: Applied}
	case *journal.Checkpoint:
		return Result{Verdict: Applied}
	}
	f := v.begin(r)
	result := f.result(Duplicate, "the same event of the same source came before")
	if !v.remembered(f) {
		result = v.fold(f)
	}
	f.finish()
	return result
}

// fold is the state of applying one record: what it concerns, and whether it changed what decisions read.
type fold struct {
	v         *View
	r         *journal.Record
	g         *Group
	c         *Component   // nil for what concerns the group
	made      bool         // the component is new
	moved     bool         // the group's version counts this record
	self      bool         // the group itself is to be looked at anew,
	concerned []*Component // and so are these,
	wide      bool         // or all
}

func (v *View) begin(r *journal.Record) *fold {
	f := &v.folded
	*f = fold{v: v, r: r, g: v.groups[r.Event.Group], concerned: f.concerned[:0]}
	if f.g == nil {
		f.g = newGroup(r.Event.Group)
		v.groups[f.g.Name] = f.g
	}
	if r.Event.Component != "" {
		if f.c = f.g.Components[r.Event.Component]; f.c == nil {
			f.made, f.c = true, f.g.component(r.Event.Component)
		}
	}
	return f
}

func (v *View) fold(f *fold) Result {
	switch d := f.r.Event.Data.(type) {
	case *journal.Grant:
		return f.grant(d)
	case *journal.Confirm:
		return f.confirm(d)
	case *journal.Ready:
		return f.ready(d)
	case *journal.Retry:
		return f.ofSession(d.Session)
	case *journal.Release:
		return f.release(d)
	case *journal.Revoke:
		return f.revoke(d)
	case *journal.Withdraw:
		return f.withdraw(d)
	case *journal.Join:
		return f.join(d)
	case *journal.Leave:
		return f.leave(d)
	case *journal.Health:
		return f.health(d)
	case *journal.Watch:
		return f.watch(d)
	case *journal.Push:
		return f.push(d)
	}
	return f.foldOrder()
}

func (f *fold) foldOrder() Result {
	switch d := f.r.Event.Data.(type) {
	case *journal.Transfer:
		return f.transfer(d)
	case *journal.Exclude:
		return f.exclude(d)
	case *journal.Include:
		return f.include(d)
	case *journal.Pause:
		return f.pause(d)
	case *journal.Resume:
		return f.resume(d)
	case *journal.Policy:
		return f.policy(d)
	}
	return f.foldDecision()
}

func (f *fold) foldDecision() Result {
	switch d := f.r.Event.Data.(type) {
	case *journal.Yield:
		return f.yield(d)
	case *journal.Hold:
		return f.hold(d)
	case *journal.Stale:
		return f.stale(d)
	case *journal.Alert:
		return f.alert(d)
	case *journal.Clear:
		return f.clear(d)
	}
	return f.result(Invalid, "the view has no rule for a "+f.r.Event.Data.Kind())
}

// applied is the result of a record that changed what decisions read.
func (f *fold) applied() Result {
	f.moved = true
	return f.result(Applied, "")
}

// noted is the result of one that was applied and changed nothing that decisions are based on.
func (f *fold) noted() Result { return f.result(Applied, "") }

func (f *fold) result(v Verdict, reason string) Result {
	return Result{Verdict: v, Reason: reason, Group: f.g, Component: f.c}
}

// void says why a decision has no force, or "".
func (f *fold) void(d *journal.Decision) string {
	switch {
	case d.Projector != f.v.projector:
		return "its projector is not the one that took over last"
	case d.Basis != f.g.Version:
		return "the group has moved since it was decided"
	}
	return ""
}

// voidIfDecided is void for what a projector may say in an operator's place.
func (f *fold) voidIfDecided(d *journal.Decision) string {
	if d == nil {
		return ""
	}
	return f.void(d)
}

// finish counts the record in the group's version and puts on the agenda whatever has to be looked at anew. A
// component that is new, and of which nothing is to be remembered, is forgotten again.
func (f *fold) finish() {
	if f.moved {
		f.g.Version++
	}
	if f.c != nil && f.made && f.c.blank() {
		delete(f.g.Components, f.c.Name)
	} else if f.c != nil {
		f.concerned = append(f.concerned, f.c)
	}
	if f.self {
		f.v.agenda.touch(f.g, nil)
	}
	if f.wide {
		for _, c := range f.g.Components {
			f.settle(c)
		}
	}
	for _, c := range f.concerned {
		f.settle(c)
	}
	clear(f.concerned)
}

// settle brings up to date what a component's state owes to its candidates and its group.
func (f *fold) settle(c *Component) {
	c.watchForLeader(f.g, f.v.time)
	if o := c.handover().Transfer; o != nil && f.moved && f.g.refuse(c, o.To, o.Force, f.v.time) != "" {
		c.Handover.Transfer = nil // it can't be carried out any more
	}
	f.v.agenda.touch(f.g, c)
}

// concern has every component looked at anew that a candidate leads, or may lead.
func (f *fold) concern(k *Candidate) {
	f.concerned = append(f.concerned, f.g.concernedBy(k.Name)...)
}

// remembered says whether this very event was applied before. Only what its content can't tell is remembered by id:
// whatever an operator sent, and every withdraw, join, leave and ready.
func (v *View) remembered(f *fold) bool {
	if !f.byID() {
		return false
	}
	id := f.r.Event.MessageID()
	if slices.Contains(f.g.Recent, id) {
		return true
	}
	f.g.Recent = newest(append(f.g.Recent, id), maxRecent)
	return false
}

func (f *fold) byID() bool {
	switch f.r.Event.Data.(type) {
	case *journal.Withdraw, *journal.Join, *journal.Leave, *journal.Ready:
		return true
	}
	return byOperator(&f.r.Event)
}

func byOperator(e *journal.Event) bool {
	const operator = "operator/"
	return len(e.Source) > len(operator) && e.Source[:len(operator)] == operator
}

func newGroup(name string) *Group {
	return &Group{Name: name, Policy: policy.Default(), Candidates: map[string]*Candidate{}, Components: map[string]*Component{}}
}

// How much is remembered at most: of each group,
const (
	maxRecent    = 64   // ids of events
	maxStrangers = 1024 // candidates that take no part
)

// of each component,
const (
	maxSessions = 256  // that ended or were refused
	maxTimes    = 1024 // of terms and of yields: a policy that tolerates more than that tolerates any number
)

// of each candidate,
const (
	maxReplaced = 64 // incarnations that are over
	maxChecks   = 64
	maxCauses   = 16 // failing runs of a check that a yield names
)

// of either,
const (
	maxAnomalies = 32
	maxStrays    = 8 // of whatever is one or two where nobody means harm
)
