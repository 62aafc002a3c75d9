package health

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stopWithin bounds how long the end of a runner waits for a run that was told to end.
const stopWithin = time.Second

// watch tries one check again and again.
type watch struct {
	Check
	runner *Runner
	index  int
	hung   *run // past its deadline; nil: none
}

// run is one call of a probe.
type run struct {
	began time.Time
	done  chan struct{} // closed when err is known
	err   error
}

func (w *watch) attend(ctx context.Context, offset time.Duration) {
	first := time.NewTimer(offset)
	defer first.Stop()
	select {
	case <-first.C:
	case <-ctx.Done():
		return
	}
	ticker := time.NewTicker(w.Period) // one that comes late is not made up for
	defer ticker.Stop()
	for {
		w.try(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// try is one period's run, unless the last one hangs still.
func (w *watch) try(ctx context.Context) {
	if w.hangs() {
		w.runner.note(w.index, fmt.Errorf("still hangs since %s", w.hung.began.UTC().Format(time.RFC3339)))
		return
	}
	bounded, cancel := context.WithTimeout(ctx, w.Deadline)
	defer cancel()
	x := begin(bounded, w.Probe)
	select {
	case <-x.done:
		w.answered(ctx, bounded, x.err)
	case <-bounded.Done():
		if ctx.Err() != nil {
			x.settle()
			return
		}
		w.hung = x
		w.answered(ctx, bounded, nil)
	}
}

// answered notes a result. What comes at the deadline, or after it, is too late; what comes when all has ended was told
// to end.
func (w *watch) answered(ctx, bounded context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		return
	case bounded.Err() != nil:
		err = fmt.Errorf("timed out after %s", w.Deadline)
	}
	w.runner.note(w.index, err)
}

// hangs says whether a run has still not returned. What one says that did is discarded.
func (w *watch) hangs() bool {
	if w.hung == nil {
		return false
	}
	select {
	case <-w.hung.done:
		w.hung = nil
		return false
	default:
		return true
	}
}

// errGone is of a probe that ended its goroutine.
var errGone = errors.New("ended without an answer")

func begin(ctx context.Context, probe Probe) *run {
	x := &run{began: time.Now(), done: make(chan struct{}), err: errGone}
	go func() {
		defer close(x.done)
		defer func() {
			if v := recover(); v != nil {
				x.err = fmt.Errorf("panicked: %v", v)
			}
		}()
		x.err = probe(ctx)
	}()
	return x
}

// settle waits for a run that was told to end.
func (x *run) settle() {
	patience := time.NewTimer(stopWithin)
	defer patience.Stop()
	select {
	case <-x.done:
	case <-patience.C:
	}
}
