package k8s

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

const (
	watchFirstRetry = 200 * time.Millisecond
	watchLastRetry  = 5 * time.Second  // and half of it more; so late is it noticed that rights were given back
	watchObeys      = 30 * time.Second // at most, where the API server asks to be left alone
	watchHealthy    = 5 * time.Second  // what lasted so long did not fail at once
)

var errEndedAtOnce = errors.New("the API server ended the watch at once")

// watcher reports what one object shows.
//
// It lists, opens a watch from there, reports a gap and all that was listed, and then follows the changes. A watch that
// the API server ends goes on from the last revision, without a gap; anything else (410 Gone, a connection that breaks,
// a refusal) begins anew. Changes are judged against the one before them as they come, our own among them, so that
// nothing that somebody else did is missed because we have written since.
type watcher struct {
	object *object
	report func(projector.Observation)
	last   sight
	opened time.Time // zero: it has not come to a watch since it began anew
	outage outage
}

// run goes on until ctx ends.
func (w *watcher) run(ctx context.Context) {
	wait := retries()
	for {
		w.opened = time.Time{}
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if !w.opened.IsZero() && time.Since(w.opened) > watchHealthy {
			wait.Reset()
			w.outage = outage{}
		}
		retry := max(wait.NextBackOff(), asked(err))
		w.failed(err, retry)
		w.rest(ctx, err, retry)
	}
}

// rest waits until it is time to begin anew: after a while, or as soon as an API server that was away is back.
func (w *watcher) rest(ctx context.Context, failure error, retry time.Duration) {
	c := w.object.client
	for away(code(failure)) && ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, outageIsDeaf)
		answered, waited := c.reach.answers(bounded, c.answersNow)
		cancel()
		if answered && waited {
			pause(ctx, rand.N(backSpread))
			return
		}
		if answered {
			break
		}
		w.failed(failure, retry)
	}
	pause(ctx, retry)
}

// retries are the times from a failure until the next attempt.
func retries() *backoff.ExponentialBackOff {
	b := &backoff.ExponentialBackOff{
		InitialInterval: watchFirstRetry, RandomizationFactor: backoff.DefaultRandomizationFactor,
		Multiplier: backoff.DefaultMultiplier, MaxInterval: watchLastRetry,
	}
	b.Reset()
	return b
}

// asked is how long the API server wants to be left alone.
func asked(err error) time.Duration {
	var after *projector.RetryAfter
	if errors.As(delayed(err), &after) {
		return min(after.After, watchObeys)
	}
	return 0
}

// failed tells of an outage: the log when it begins and while it lasts, the journal where it is long.
func (w *watcher) failed(err error, retry time.Duration) {
	logger := w.object.client.opts.Logger
	if w.outage.failed(time.Now(), code(err)) {
		logger.Warn("an object can't be watched", "object", w.object.resource.String(),
			"for", time.Since(w.outage.since).Round(time.Millisecond), "retryIn", retry, "error", err)
	}
	if w.outage.deaf(time.Now()) {
		w.gap()
	}
}

// follow watches until something fails.
func (w *watcher) follow(ctx context.Context) error {
	s, found, err := w.begin(ctx)
	if err != nil {
		return err
	}
	w.announce(found)
	for {
		if err := w.read(s); err != nil {
			return err
		}
		if time.Since(s.opened) < watchHealthy {
			return errEndedAtOnce
		}
		if s, err = w.object.open(ctx, s.from); err != nil {
			return err
		}
	}
}

// finding is an object as it was listed, and what was known of it before.
type finding struct{ listed, was *version }

// begin opens a watch, and says what was found then.
func (w *watcher) begin(ctx context.Context) (*stream, finding, error) {
	back, err := w.object.client.turn(ctx)
	if err != nil {
		return nil, finding{}, err
	}
	defer back()
	was := w.object.newest()
	listed, from, err := w.object.list(ctx)
	if err != nil {
		return nil, finding{}, err
	}
	s, err := w.object.open(ctx, from)
	if err != nil {
		return nil, finding{}, err
	}
	w.opened = s.opened
	return s, finding{listed, was}, nil
}

// announce reports a gap, and then everything that the object shows by then. After a gap an observation counts at any
// revision: it must not be older than a push that the journal heard of before the gap.
func (w *watcher) announce(f finding) {
	if w.outage.over() {
		w.object.client.opts.Logger.Info("an object is watched again",
			"object", w.object.resource.String(), "after", time.Since(w.outage.since).Round(time.Millisecond))
	}
	w.gap()
	before, now := w.last, w.object.see(w.object.settle(f.listed, f.was))
	w.last = now
	for _, component := range w.components(before, now) {
		w.observe(component, now)
	}
}

// read reports changes until the watch ends; nil where the API server ended it in order.
func (w *watcher) read(s *stream) error {
	for {
		v, err := s.next()
		if err != nil || v == nil {
			return errors.Join(err, s.close())
		}
		w.change(v)
	}
}

// change reports what is different, unless we made it so, or it came before what was reported already.
func (w *watcher) change(v *version) {
	if v.revision <= w.last.revision {
		return
	}
	before, now := w.last, w.object.seeAfter(w.last, v)
	w.last = now
	if ours := w.object.saw(v, now); ours || now.same(before) {
		return
	}
	all := before.holder != now.holder || now.sequence < before.sequence
	for _, component := range w.components(before, now) {
		if all || !sameLeader(before.entries[component], now.entries[component]) {
			w.observe(component, now)
		}
	}
}

// components are those that are shown, were shown, or should be, sorted.
func (w *watcher) components(before, now sight) []string {
	all := map[string]bool{}
	for _, s := range []sight{before, now} {
		for component := range s.entries {
			all[component] = true
		}
	}
	w.object.mu.Lock()
	maps.Copy(all, w.object.expected)
	w.object.mu.Unlock()
	return slices.Sorted(maps.Keys(all))
}

func (w *watcher) gap() {
	w.report(projector.Observation{Component: w.object.component, Gap: true})
}

func (w *watcher) observe(component string, s sight) {
	w.report(projector.Observation{
		Component: component, Revision: s.revision, Sequence: s.sequence, Entry: s.entries[component], Holder: s.holder,
	})
}

func sameLeader(a, b *journal.LeaderInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Session == b.Session && a.Candidate == b.Candidate && a.Address == b.Address && maps.Equal(a.Properties, b.Properties)
}
