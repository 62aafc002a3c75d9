// Package compare says whether a target shows what the view wants it to show.
//
// It is the judgement that the view passes on an observation (see view.md, "watch"), without its memory: what was read
// just now is compared with what must stand there by now, whatever was pushed or seen before. It changes nothing.
//
// A candidate that one of the two does not name is no difference, nor are properties: some layouts have no place for
// them.
package compare

import (
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// What comparing says.
const (
	Same     = "same"
	Differs  = "differs"
	Observed = "observed" // nothing is kept there, so whatever stands there is no difference
)

// Why a target differs.
const (
	Missing       = "missing"        // nobody is shown, where a leader must be
	Outdated      = "outdated"       // the leader that stood there before the intent
	OtherLeader   = "other-leader"   // one that the journal did not have shown there
	LowerSequence = "lower-sequence" // the right leader, with a sequence that is missing or lower than it must be
	Foreign       = "foreign-entry"  // somebody, where nobody must be
	Ahead         = "ahead"          // a sequence that the journal has not reached: nothing is written over it
)

// Finding is what comparing a target for one component came to.
type Finding struct {
	State    string              // Same, Differs or Observed
	Reason   string              // why it differs, else empty
	Leader   *journal.LeaderInfo // who must be shown; nil: nobody
	Sequence uint64              // with this sequence, or a higher one; 0: with any, or none
}

// Shown is what was read of a target for one component.
type Shown struct {
	Entry    *journal.LeaderInfo // nil: nobody
	Sequence uint64              // 0: none
}

// Target compares a target of a group. newest is the view's sequence.
func Target(newest uint64, g *view.Group, c *view.Component, spec *journal.Target, shown Shown) Finding {
	if !g.Keeps(spec) {
		return Finding{State: Observed}
	}
	var f Finding
	if c.Intent != nil {
		f.Leader, f.Sequence = c.Intent.Leader, c.Intent.Sequence
	}
	f.Reason = reason(c.Intent, c.Targets[spec.Name], shown)
	if spec.Guarded {
		f.Sequence = 0 // it is never fenced
	} else if f.Leader != nil || shown.Sequence > newest {
		f.judgeSequence(newest, shown.Sequence)
	}
	return f.state()
}

// BuiltIn compares the key of a component in the built-in bucket, which has a sequence whoever is shown.
func BuiltIn(newest uint64, c *view.Component, shown Shown) Finding {
	f := Finding{Leader: c.Leader(), Sequence: c.Shown, Reason: reason(c.Intent, nil, shown)}
	f.judgeSequence(newest, shown.Sequence)
	return f.state()
}

// reason is why an entry differs from an intent, empty where it does not.
func reason(i *view.Intent, t *view.Target, shown Shown) string {
	switch {
	case i == nil && shown.Entry == nil, i != nil && i.Shown(shown.Entry):
		return ""
	case shown.Entry == nil:
		return Missing
	case i != nil && i.Outdated(shown.Entry, t):
		return Outdated
	case i == nil || i.Leader == nil:
		return Foreign
	}
	return OtherLeader
}

// judgeSequence adds what the sequence says. One that is ahead explains whatever else differs: it can't be mended.
func (f *Finding) judgeSequence(newest, shown uint64) {
	switch {
	case shown > newest:
		f.Reason = Ahead
	case shown < f.Sequence && f.Reason == "":
		f.Reason = LowerSequence
	}
}

func (f Finding) state() Finding {
	f.State = Differs
	if f.Reason == "" {
		f.State = Same
	}
	return f
}
