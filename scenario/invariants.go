package scenario

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

// The invariants of the view, each checked where it can break first.

func (w *world) broke(format string, args ...any) {
	w.broken = append(w.broken, fmt.Errorf("invariant "+format, args...))
}

// check says which invariants are broken.
func (w *world) check() error {
	w.checkSnapshots()
	w.checkLeases()
	if len(w.broken) == 0 {
		return nil
	}
	return fmt.Errorf("%w\n%w", ErrFailed, errors.Join(w.broken...))
}

// checkRecord holds I3: epochs rise; and I7: what is delivered twice changes nothing the second time.
func (w *world) checkRecord(r *journal.Record, result view.Result) {
	if c := result.Component; c != nil && c.Term != nil {
		if c.Term.Epoch != c.Epoch {
			w.broke("I3: record %d: the open term of %s has epoch %d, the newest is %d", r.Sequence, c.Name, c.Term.Epoch, c.Epoch)
		}
		if c.Epoch < w.epochs[c.Name] {
			w.broke("I3: record %d: the epoch of %s fell from %d to %d", r.Sequence, c.Name, w.epochs[c.Name], c.Epoch)
		}
		w.epochs[c.Name] = c.Epoch
	}
	if _, ok := r.Event.Data.(*journal.Takeover); ok {
		return // a takeover is about its own sequence
	}
	copied, err := clone(w.view)
	if err != nil {
		w.broke("I6: record %d: %v", r.Sequence, err)
		return
	}
	again := *r
	again.Sequence++
	copied.Apply(&again)
	if copied.Hash() != w.view.Hash() {
		w.broke("I7: record %d changes something when it is delivered twice: %s", r.Sequence, line(r, result))
	}
}

// checkSnapshots holds I6: the same records give the same view, by way of snapshots too.
func (w *world) checkSnapshots() {
	next, err := clone(w.shadow)
	if err != nil {
		w.broke("I6: %v", err)
		return
	}
	for i := int(next.Sequence()); i < len(w.log); i++ {
		next.Apply(&w.log[i])
	}
	if next.Hash() != w.view.Hash() {
		w.broke("I6: at record %d the view by way of a snapshot differs from the one folded at once", len(w.log))
	}
	w.shadow = next
}

func clone(v *view.View) (*view.View, error) {
	var b bytes.Buffer
	if err := v.Snapshot(&b); err != nil {
		return nil, err
	}
	return view.Restore(&b)
}

// checkWrite holds I1: no write of ours takes down what was never withdrawn; I2 and I10: the sequence shown never
// falls. An object that somebody else deleted or stripped begins anew.
func (w *world) checkWrite(o *object, doc *projector.Document, before, after State) {
	if after.Revision == before.Revision {
		return // refused
	}
	if !doc.Guarded && after.Sequence < before.Sequence {
		w.broke("I2: a write to %s took the sequence from %d to %d", o.name, before.Sequence, after.Sequence)
	}
	for name, was := range before.Entries {
		if after.Entries[name] == nil && !w.withdrawn(name) {
			w.broke("I1: a write to %s took the entry of %s down (session %s), which was never withdrawn", o.name, name, was.Session)
		}
	}
}

// withdrawn says whether a component's intent was ever taken down.
func (w *world) withdrawn(component string) bool {
	for i := range w.log {
		e := &w.log[i].Event
		if e.Component != component || w.log[i].Err != nil {
			continue
		}
		switch e.Data.(type) {
		case *journal.Withdraw:
			return true
		case *journal.Revoke:
			if w.scenario.policy.OnRevoke == "clear" {
				return true
			}
		}
	}
	return false
}

// checkConverged holds I9: once faults have stopped every target shows its intent.
func (w *world) checkConverged() error {
	var late []string
	g := w.view.Group(group)
	for _, name := range sortedKeys(w.objects) {
		o := w.objects[name]
		for _, c := range sortedKeys(g.Components) {
			shown, err := o.backend.Show(w.ctx, c)
			if err != nil {
				return err
			}
			if what := w.unshown(o, g.Components[c], shown); what != "" {
				late = append(late, fmt.Sprintf("  invariant I9: %s does not show %s: %s", name, c, what))
			}
		}
	}
	return failed(late)
}

func (w *world) unshown(o *object, c *view.Component, shown State) string {
	if c.Intent == nil || !o.spec.Shows(c.Name) || o.spec.Guarded || shown.Sequence > uint64(len(w.log)) {
		return "" // nothing to show, a system's own object, or another journal's
	}
	is := shown.Entries[c.Name]
	switch {
	case c.Intent.Leader == nil && is != nil && c.Targets[o.name].Due:
		return "it was withdrawn and still stands there"
	case c.Intent.Leader == nil:
		return ""
	case is == nil:
		return "there is nothing"
	case is.Session != c.Intent.Leader.Session || is.Address != c.Intent.Leader.Address:
		return fmt.Sprintf("it shows %s of session %s", is.Address, is.Session)
	case shown.Sequence < c.Intent.Sequence:
		return fmt.Sprintf("its sequence %d is below %d", shown.Sequence, c.Intent.Sequence)
	}
	return ""
}
