package conformance

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

func (s Suite) runWatch(t *testing.T) {
	s.checks(t, map[string]func(*world){
		"begins with a gap and all that is shown": checkWatchBegins,
		"tells after a gap what came before it":   checkWatchGap,
		"reports what is missing":                 checkWatchMissing,
		"reports what others change":              checkWatchChanges,
		"reports an object that is made anew":     checkWatchDeleted,
		"reports a fence that fell":               checkWatchFence,
		"is silent on what is not leadership":     checkWatchNoise,
		"reports others between own writes":       checkWatchOwn,
		"survives broken connections":             checkWatchDrop,
		"ends with its context":                   checkWatchEnds,
		"ends with what report returns":           checkWatchReportFails,
	})
}

// watching is a watch that is under way.
type watching struct {
	*world
	seen   chan projector.Observation
	result chan error
	last   uint64 // revision
}

// watch begins to watch, and waits for the first full observation.
func (w *world) watch() *watching {
	w.Helper()
	x := &watching{world: w, seen: make(chan projector.Observation, 1024), result: make(chan error, 1)}
	ctx, cancel := context.WithCancel(w.Context())
	go func() {
		x.result <- w.target.Watch(ctx, func(o projector.Observation) error { x.seen <- o; return nil })
	}()
	w.Cleanup(func() {
		cancel()
		require.ErrorIs(w, <-x.result, context.Canceled)
	})
	first := x.next()
	require.True(w, first.Gap, "the first observation is %+v", first)
	return x
}

func (x *watching) next() projector.Observation {
	x.Helper()
	select {
	case o := <-x.seen:
		return o
	case <-x.bounded().Done():
		require.Fail(x, "nothing was observed")
		return projector.Observation{}
	}
}

// expect waits for the first component to be seen so, passing over nothing but gaps and what was seen before them.
func (x *watching) expect(l *journal.LeaderInfo, sequence uint64) {
	x.Helper()
	o := x.next()
	for o.Gap || o.Component != First {
		o = x.next()
	}
	x.requireSees(o, l, sequence)
}

// expectAtLast waits until the first component is seen so, whatever is seen before.
func (x *watching) expectAtLast(l *journal.LeaderInfo, sequence uint64) {
	x.Helper()
	o := x.next()
	for o.Gap || o.Component != First || o.Sequence != sequence || !x.matches(o.Entry, l) {
		o = x.next()
	}
	x.requireSees(o, l, sequence)
}

func (x *watching) matches(have, want *journal.LeaderInfo) bool {
	if have == nil || want == nil {
		return have == want
	}
	return have.Session == x.suite.Visible(*want).Session && have.Address == x.suite.Visible(*want).Address
}

func (x *watching) requireSees(o projector.Observation, l *journal.LeaderInfo, sequence uint64) {
	x.Helper()
	require.Equal(x, sequence, o.Sequence)
	require.Greater(x, o.Revision, x.last, "revisions rise")
	x.last = o.Revision
	if l == nil {
		require.Nil(x, o.Entry)
		return
	}
	require.NotNil(x, o.Entry)
	require.Equal(x, x.suite.Visible(*l), *o.Entry)
}

func set(l *journal.LeaderInfo) Change {
	return Change{Entries: map[string]*journal.LeaderInfo{First: l}}
}

func checkWatchBegins(w *world) {
	w.push(w.one(5, leader(1)))
	x := w.watch()
	x.expect(leader(1), 5)
}

// checkWatchGap has a push end, and be told to the journal, before the gap is. After a gap an observation counts at any
// revision, so that an older one would be taken for somebody else's doing.
func checkWatchGap(w *world) {
	w.push(w.one(5, leader(1)))
	ctx, cancel := context.WithCancel(w.Context())
	x := &watching{world: w, seen: make(chan projector.Observation, 1024)}
	pushed, result := false, make(chan error, 1)
	go func() {
		result <- w.target.Watch(ctx, func(o projector.Observation) error {
			if o.Gap && !pushed {
				pushed = true
				if _, err := w.target.Push(ctx, w.one(6, leader(2))); err != nil {
					return err
				}
			}
			x.seen <- o
			return nil
		})
	}()
	x.expect(leader(2), 6)
	cancel()
	w.requireEnds(result, context.Canceled)
}

func checkWatchMissing(w *world) {
	w.push(w.one(5, leader(1)))
	w.object.Write(w, set(nil))
	x := w.watch()
	x.expect(nil, 5)
}

func checkWatchChanges(w *world) {
	w.push(w.one(5, leader(1)))
	x := w.watch()
	x.expect(leader(1), 5)
	w.object.Write(w, set(leader(2)))
	x.expect(leader(2), 5)
	w.object.Write(w, set(nil))
	x.expect(nil, 5)
	w.object.Write(w, set(leader(1)))
	x.expect(leader(1), 5)
}

func checkWatchDeleted(w *world) {
	w.push(w.one(5, leader(1)))
	x := w.watch()
	x.expect(leader(1), 5)
	w.object.Write(w, Change{Delete: true})
	x.expect(nil, 0)
	w.object.Write(w, set(leader(2)))
	x.expectAtLast(leader(2), 0)
	w.push(fresh(w.one(5, leader(1))))
}

func checkWatchFence(w *world) {
	w.push(w.one(5, leader(1)))
	x := w.watch()
	x.expect(leader(1), 5)
	w.object.Write(w, Change{Sequence: 3})
	x.expect(leader(1), 3)
	w.object.Write(w, Change{Unfence: true})
	x.expect(leader(1), 0)
}

func checkWatchNoise(w *world) {
	w.push(w.one(5, leader(1)))
	x := w.watch()
	x.expect(leader(1), 5)
	for _, noise := range []string{"a", "b", "c"} {
		w.object.Write(w, Change{Noise: noise})
	}
	w.object.Write(w, set(leader(2)))
	x.expect(leader(2), 5)
	require.Empty(w, x.seen)
}

// checkWatchOwn pushes all the while: what somebody else does in between must be seen.
func checkWatchOwn(w *world) {
	w.push(w.one(5, leader(1)))
	x := w.watch()
	x.expect(leader(1), 5)
	for i := range 10 {
		n := uint64(10 + i)
		w.push(fresh(w.one(n, leader(2))))
		w.object.Write(w, set(leader(100+i)))
		x.expectAtLast(leader(100+i), n)
	}
}

func checkWatchDrop(w *world) {
	w.push(w.one(5, leader(1)))
	x := w.watch()
	x.expect(leader(1), 5)
	for i := range 3 {
		w.object.Drop(w)
		w.object.Write(w, set(leader(10+i)))
		x.expectAtLast(leader(10+i), 5)
	}
}

func checkWatchEnds(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	result := make(chan error, 1)
	go func() { result <- w.target.Watch(ctx, func(projector.Observation) error { return nil }) }()
	cancel()
	w.requireEnds(result, context.Canceled)
}

func checkWatchReportFails(w *world) {
	w.push(w.one(5, leader(1)))
	errReport := errors.New("the report failed")
	result := make(chan error, 1)
	go func() { result <- w.target.Watch(w.Context(), func(projector.Observation) error { return errReport }) }()
	w.requireEnds(result, errReport)
}

func (w *world) requireEnds(result <-chan error, want error) {
	w.Helper()
	select {
	case err := <-result:
		require.ErrorIs(w, err, want)
	case <-w.bounded().Done():
		require.Fail(w, "the watch does not end")
	}
}
