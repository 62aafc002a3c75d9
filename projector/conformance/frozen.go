package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/projector"
)

// runFrozen has a writer stop after its read and before its write, and go on when others have written.
func (s Suite) runFrozen(t *testing.T) {
	s.checks(t, map[string]func(*world){
		"a newer intent outlives it": func(w *world) {
			w.frozen(w.one(6, leader(2)), w.one(7, leader(3)))
		},
		"a withdrawal outlives it": func(w *world) {
			w.frozen(w.one(6, leader(2)), w.one(7, nil))
		},
		"a newer intent outlives a withdrawal": func(w *world) {
			w.frozen(w.one(6, nil), w.one(7, leader(1)))
		},
		"the same leader again outlives it": func(w *world) { // A, B, A: the sequence alone is a reason to write
			w.frozen(w.one(6, leader(2)), w.one(7, leader(1)))
		},
		"it lands before anybody else": checkThawsFirst,
		"it is the first write of all": checkFrozenCreation,
	})
}

// frozen has one process stop with a write composed on leader 1, and another one write the newer document.
func (w *world) frozen(older, newer *projector.Document) {
	w.push(w.one(5, leader(1)))
	w.overtake(older, newer)
}

func (w *world) overtake(older, newer *projector.Document) {
	stalled := w.target
	held := w.object.Hold(w)
	pushed := w.begin(w.bounded(), stalled, older)
	w.await(held.Reached)
	w.crash() // another process
	require.True(w, w.push(fresh(newer)).Wrote)
	shown := w.object.Read(w)
	held.Let()
	require.Error(w, (<-pushed).err)
	require.Equal(w, shown, w.object.Read(w), "the frozen write landed over a newer one")
	w.target = stalled
	w.requireRefused(fresh(older), projector.ErrSuperseded)
}

func checkFrozenCreation(w *world) {
	w.overtake(w.one(6, leader(2)), w.one(7, leader(3)))
}

// checkThawsFirst has the frozen write land, given up by who made it, while nobody else has written: the newer intent
// must be shown after it all the same.
func checkThawsFirst(w *world) {
	w.push(w.one(5, leader(1)))
	held := w.object.Hold(w)
	ctx, cancel := context.WithCancel(w.bounded())
	defer cancel()
	pushed := w.begin(ctx, w.target, w.one(6, leader(2)))
	w.await(held.Reached)
	cancel()
	require.ErrorIs(w, (<-pushed).err, projector.ErrUnknownOutcome)
	w.crash()
	w.push(w.one(5, leader(1))) // it knows the object from before the write lands
	held.Let()
	doc := w.one(7, leader(3))
	_, err := w.target.Push(w.bounded(), doc)
	if err != nil {
		require.ErrorIs(w, err, projector.ErrConflict)
	}
	w.push(fresh(doc))
}

// pushed is what came of a push.
type pushed struct {
	receipt projector.Receipt
	err     error
}

func (w *world) begin(ctx context.Context, target projector.Target, doc *projector.Document) <-chan pushed {
	done := make(chan pushed, 1)
	go func() {
		receipt, err := target.Push(ctx, doc)
		done <- pushed{receipt, err}
	}()
	return done
}

func (w *world) await(c <-chan struct{}) {
	w.Helper()
	select {
	case <-c:
	case <-w.bounded().Done():
		require.Fail(w, "it did not come to a write")
	}
}
