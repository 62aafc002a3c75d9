package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// step is a kind of write: what stands there before, and what is to be shown.
type step struct {
	name   string
	before *journal.LeaderInfo // nil: the object is not there
	after  *journal.LeaderInfo // nil: withdrawn
}

func steps() []step {
	return []step{
		{"the first", nil, leader(2)},
		{"a change", leader(1), leader(2)},
		{"the sequence only", leader(1), leader(1)},
		{"a withdrawal", leader(1), nil},
	}
}

// crashes says when the process dies: never, before the write that fails, or after it.
type crashes string

const (
	never       crashes = "no crash"
	crashBefore crashes = "a crash before"
	crashAfter  crashes = "a crash after"
)

// runFaults has every kind of write meet every fault, with the process crashing before or after it. Afterwards the
// intent, or a newer one, has to be shown, whatever became of the write.
func (s Suite) runFaults(t *testing.T) {
	faults := map[string]func(w *world, doc *projector.Document) error{
		"failed, not applied":        func(w *world, doc *projector.Document) error { return w.fail(NotApplied, doc) },
		"failed, but applied":        func(w *world, doc *projector.Document) error { return w.fail(Applied, doc) },
		"timed out, never landed":    func(w *world, doc *projector.Document) error { return w.timeOut(doc, false) },
		"timed out, landed after it": func(w *world, doc *projector.Document) error { return w.timeOut(doc, true) },
	}
	for name, fault := range faults {
		for _, step := range steps() {
			for _, crash := range []crashes{never, crashBefore, crashAfter} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, step.name, crash), func(t *testing.T) {
					s.world(t).survive(step, crash, fault)
				})
			}
		}
	}
	t.Run("a connection that breaks", func(t *testing.T) { checkDrop(s.world(t)) })
}

func (w *world) survive(step step, crash crashes, fault func(*world, *projector.Document) error) {
	if step.before != nil {
		w.push(w.one(5, step.before))
	}
	doc := w.one(6, step.after)
	if crash == crashBefore {
		w.crash()
	}
	err := fault(w, doc)
	require.NotErrorIs(w, err, projector.ErrSuperseded)
	if crash == crashAfter {
		w.crash()
	}
	w.push(fresh(doc))
	require.False(w, w.push(doc).Wrote)
	w.push(w.one(7, leader(3)))
	w.requireRefused(doc, projector.ErrSuperseded)
}

// fail pushes while all writes fail in one way.
func (w *world) fail(fault Fault, doc *projector.Document) error {
	before := w.object.Read(w)
	w.object.Fail(w, fault)
	_, err := w.target.Push(w.bounded(), doc)
	w.object.Fail(w, NoFault)
	w.requireHonest(err, before)
	if fault == Applied {
		require.ErrorIs(w, err, projector.ErrUnknownOutcome)
		w.requireShows(doc)
		return err
	}
	require.Equal(w, before, w.object.Read(w))
	return err
}

// timeOut pushes, and gives up while the write is under way.
func (w *world) timeOut(doc *projector.Document, lands bool) error {
	held := w.object.Hold(w)
	ctx, cancel := context.WithCancel(w.bounded())
	defer cancel()
	pushed := w.begin(ctx, w.target, doc)
	w.await(held.Reached)
	cancel()
	err := (<-pushed).err
	require.ErrorIs(w, err, projector.ErrUnknownOutcome)
	if lands {
		held.Let()
		w.requireShows(doc)
	}
	return err
}

// checkDrop allows one push to fail, whose outcome has to be told truly.
func checkDrop(w *world) {
	w.push(w.one(5, leader(1)))
	before := w.object.Read(w)
	w.object.Drop(w)
	doc := w.one(6, leader(2))
	if _, err := w.target.Push(w.bounded(), doc); err != nil {
		w.requireHonest(err, before)
	}
	w.pushUntilShown(doc)
}

// pushUntilShown goes on while the backend can't be reached.
func (w *world) pushUntilShown(doc *projector.Document) {
	ctx := w.bounded()
	for {
		_, err := w.target.Push(ctx, fresh(doc))
		if err == nil {
			break
		}
		require.NoError(w, ctx.Err(), "still not shown: %v", err)
	}
	w.requireShows(doc)
}
