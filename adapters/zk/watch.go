package zk

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/leadership-journal/journald/projector"
)

const (
	watchFirstRetry = 200 * time.Millisecond
	watchLastRetry  = 5 * time.Second // and half of it more; so late is it noticed that rights were given back
	outageIsDeaf    = 5 * time.Second // an outage that lasts so long is told to the journal
)

// watcher reports what one object shows.
//
// On each connection it reads everything, which is a gap, and then what the server says has changed. Changes are judged
// against the one before them, our own among them.
type watcher struct {
	object *object
	report func(projector.Observation)
	last   sight
}

func newWatcher(o *object, report func(projector.Observation)) *watcher {
	return &watcher{object: o, report: report}
}

// run goes on until ctx ends.
func (w *watcher) run(ctx context.Context) {
	wait := &backoff.ExponentialBackOff{
		InitialInterval: watchFirstRetry, RandomizationFactor: backoff.DefaultRandomizationFactor,
		Multiplier: backoff.DefaultMultiplier, MaxInterval: watchLastRetry,
	}
	wait.Reset()
	for {
		s, err := w.connected(ctx)
		if err != nil {
			return
		}
		err = w.follow(ctx, s, wait.Reset)
		if ctx.Err() != nil {
			return
		}
		if s.ctx.Err() != nil {
			continue // another connection is being made
		}
		retry := wait.NextBackOff()
		w.object.target.client.opts.Logger.Warn("a znode can't be watched", "path", w.object.path, "retryIn", retry, "error", err)
		pause(ctx, retry)
	}
}

// connected waits for a connection. Where that takes long the journal should not go on as if all were seen.
func (w *watcher) connected(ctx context.Context) (*session, error) {
	bounded, cancel := context.WithTimeout(ctx, outageIsDeaf)
	defer cancel()
	s, err := w.object.target.client.connected(bounded)
	if bounded.Err() == nil || ctx.Err() != nil {
		return s, err
	}
	w.report(projector.Observation{Component: w.object.component, Gap: true})
	return w.object.target.client.connected(ctx)
}

// follow reports what one connection says, until it is lost or a read fails.
func (w *watcher) follow(ctx context.Context, s *session, healthy func()) error {
	ps := newParts(w.object)
	defer ps.close()
	if err := w.look(ctx, s, ps); err != nil {
		return err
	}
	healthy()
	resync := time.NewTicker(w.object.target.client.opts.Resync)
	defer resync.Stop()
	for {
		var err error
		select {
		case <-ps.fired:
			err = w.change(ctx, s, ps)
		case <-resync.C:
			err = w.resync(ctx, s, ps)
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// look reports a gap, and then all that the object shows by then. After a gap an observation counts at any revision: it
// must not be older than a push that the journal heard of before the gap.
func (w *watcher) look(ctx context.Context, s *session, ps *parts) error {
	if err := s.sync(ctx, w.object.path); err != nil {
		return err
	}
	w.report(projector.Observation{Component: w.object.component, Gap: true})
	for {
		ended := w.object.ended()
		v, err := ps.read(ctx, s)
		if err != nil {
			return err
		}
		if w.object.reset(v, ended) {
			w.last = w.object.see(v)
			w.report(w.last.observation(w.object.component))
			return nil
		}
	}
}

// change reports what is different about leadership, unless we made it so.
func (w *watcher) change(ctx context.Context, s *session, ps *parts) error {
	v, err := ps.read(ctx, s)
	if err != nil {
		return err
	}
	before, now := w.last, w.object.see(v)
	w.last = now
	if !w.object.saw(v, &now) && before.moved(&now) {
		w.report(now.observation(w.object.component))
	}
	return nil
}

var errUntold = errors.New("a change was not told")

// resync reads everything beside the watches. What is different then was missed, unless it is being told just now.
func (w *watcher) resync(ctx context.Context, s *session, ps *parts) error {
	v, err := w.object.read(ctx, s)
	if err != nil {
		return err
	}
	if now := w.object.see(v); now.same(&w.last) || len(ps.fired) > 0 {
		return nil
	}
	return errUntold
}
