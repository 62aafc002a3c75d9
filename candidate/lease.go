package candidate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/policy"
)

// lease is the liveness key of one candidate, and what the candidate may conclude from it. One goroutine keeps it; the
// others read it, and terms are ended by it at once.
type lease struct {
	client      client.Client
	key         alive.Key
	incarnation string
	probe       func(context.Context) error
	clock       clock
	logger      *slog.Logger

	mu      sync.Mutex
	beat    alive.Heartbeat // what the next renewal says
	every   time.Duration   // between two renewals
	stop    time.Duration   // until when leader work may go on, by the clock; 0: it may not
	until   time.Duration   // end of the lease
	fence   uint64          // the terms up to this epoch are over
	newest  bool            // the journal knows of no later incarnation
	held    map[*Term]*hold
	renewed chan struct{} // closed and replaced with every renewal
	pace    chan struct{} // of one: every or the lease has changed

	// Of the keeping goroutine alone.
	revision uint64
	owned    bool // the key was seen to be this incarnation's
	failing  bool
}

func newLease(cfg *Config) *lease {
	return &lease{
		client: cfg.Client, key: alive.Key{Group: cfg.Client.Group(), Candidate: cfg.Name}, incarnation: cfg.Incarnation,
		probe: cfg.Probe, clock: cfg.clock, logger: cfg.Logger, held: map[*Term]*hold{},
		renewed: make(chan struct{}), pace: make(chan struct{}, 1),
	}
}

// hold is a term that rests on the lease, or waits to.
type hold struct {
	end     context.CancelCauseFunc
	working bool // from before its work begins
	lapsed  bool // the lease lapsed meanwhile, and may have been somebody else's
}

// workShare is how much of a lease leader work may use; the rest is there to stop in.
func workShare(d time.Duration) time.Duration { return d / 3 * 2 }

// Bounds of what a policy may ask for: a lease that is not longer than the HTTP API takes, renewed soon enough to be
// tried again before leader work has to stop, and seldom enough for a server.
const (
	longestLease  = 24 * time.Hour
	shortestEvery = 50 * time.Millisecond
)

// configure has the lease kept as the group's policy says, within bounds.
func (l *lease) configure(p *policy.Policy) {
	beat := alive.Heartbeat{Incarnation: l.incarnation}
	every := min(time.Duration(p.Lease.RenewEvery), time.Duration(p.Health.StaleAfter)/3)
	if p.Election == policy.Managed {
		beat.Lease = min(p.Lease.Duration, policy.Duration(longestLease))
		every = min(every, time.Duration(beat.Lease)/3)
	}
	every = max(every, shortestEvery)
	l.mu.Lock()
	defer l.mu.Unlock()
	beat.Run = l.beat.Run
	if l.beat == beat && l.every == every {
		return
	}
	l.beat, l.every = beat, every
	select {
	case l.pace <- struct{}{}:
	default:
	}
}

// passed has the next renewals say which run of a check passed last.
func (l *lease) passed(run uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beat.Run = max(l.beat.Run, run)
}

// attempt is one renewal.
type attempt struct {
	sent     time.Duration
	lease    time.Duration
	revision uint64
	err      error
}

// keep renews until ctx ends, or another incarnation has taken the key. No renewal begins while one hangs.
func (l *lease) keep(ctx context.Context) error {
	select {
	case <-l.pace: // nothing is known of the policy before
	case <-ctx.Done():
		return nil
	}
	answers := make(chan attempt, 1)
	renew, lapse := time.NewTimer(0), time.NewTimer(unleased)
	defer renew.Stop()
	defer lapse.Stop()
	for under := false; ; {
		select {
		case <-renew.C:
			under = true
			next := l.next()
			lapse.Reset(l.left())
			go func() { answers <- l.renew(ctx, next) }()
		case a := <-answers:
			under = false
			wait, err := l.answered(a)
			if err != nil {
				return err
			}
			renew.Reset(wait)
			lapse.Reset(l.left())
		case <-lapse.C:
			lapse.Reset(l.lapse())
		case <-l.pace:
			if !under {
				renew.Reset(0)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// renewal is what an attempt is about to say.
type renewal struct {
	beat     alive.Heartbeat
	every    time.Duration
	revision uint64
}

// next is the next renewal. From here on no more is counted on than it says: whoever sees it counts on that, and it may be
// seen though its answer is lost.
func (l *lease) next() renewal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if duration := time.Duration(l.beat.Lease); duration > 0 {
		l.stop, l.until = min(l.stop, l.clock()+workShare(duration)), min(l.until, l.clock()+duration)
	}
	return renewal{l.beat, l.every, l.revision}
}

// renew makes one attempt, the probe before it. It may hang as long as the probe does.
func (l *lease) renew(ctx context.Context, r renewal) attempt {
	if l.probe != nil {
		probing, cancel := context.WithTimeout(ctx, r.every)
		defer cancel()
		if err := l.probe(probing); err != nil {
			return attempt{err: fmt.Errorf("the probe before the renewal: %w", err)}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, max(r.every, time.Second))
	defer cancel()
	a := attempt{sent: l.clock(), lease: time.Duration(r.beat.Lease)}
	a.revision, a.err = l.client.Renew(ctx, l.key, r.beat, r.revision)
	return a
}

// answered takes note of an attempt, and says when to make the next one.
func (l *lease) answered(a attempt) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conflict, lost := errors.AsType[*alive.Conflict](a.err)
	switch {
	case a.err == nil:
		l.revision, l.owned = a.revision, true
		l.extend(a)
		l.recovered()
		return l.every, nil
	case lost:
		return l.contested(conflict.Found)
	}
	l.complain(a.err)
	return l.again(), nil
}

// again is how long after a renewal that failed the next one is tried.
func (l *lease) again() time.Duration { return max(min(l.every/4, time.Second), shortestEvery) }

// contested looks at what stands in the key in place of what this candidate wrote last, and says when to try again, going
// by that.
func (l *lease) contested(found *alive.Entry) (time.Duration, error) {
	switch {
	case found == nil:
		l.revision = 0 // the bucket was lost; the lease runs on as far as it did
	case found.Incarnation == l.incarnation:
		l.revision, l.owned = found.Revision, true
		if found.Until > l.fence {
			l.fence = found.Until
			l.end(found.Until, fmt.Errorf("%w: it was ended up to record %d, since nothing was heard of the candidate", ErrLeaseLost, found.Until))
		}
	case l.owned:
		return 0, fmt.Errorf("%w: its liveness key is incarnation %s's", ErrReplaced, found.Incarnation)
	case !l.newest:
		return l.again(), nil // it may be a later life's, which must not lose its key to an earlier one
	default:
		l.revision = found.Revision // an earlier life's
	}
	return 0, nil
}

// joined says that the journal knows this incarnation as the newest of its candidate.
func (l *lease) joined() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest = true
}

// extend counts from before the renewal was sent: whoever ends leases counts from after it was seen. A term whose lease has
// lapsed meanwhile is not revived by it, even where nobody is known to have ended it.
func (l *lease) extend(a attempt) {
	if a.lease == 0 {
		return
	}
	if a.sent >= l.until {
		for _, h := range l.held {
			if h.working {
				h.lapsed = true
				h.end(fmt.Errorf("%w: it could not be renewed in time", ErrLeaseLost))
			}
		}
	}
	l.stop, l.until = max(l.stop, a.sent+workShare(a.lease)), max(l.until, a.sent+a.lease)
	close(l.renewed)
	l.renewed = make(chan struct{})
}

// left is how long to wait before looking whether the lease still carries leader work.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == 0 {
		return unleased
	}
	return max(l.stop-l.clock(), 0)
}

// unleased is how often to look at a lease that carries nothing.
const unleased = time.Hour

// lapse ends what rests on the lease where it has not been renewed in time, and says when to look again.
func (l *lease) lapse() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.stop - l.clock(); left > 0 {
		return left
	}
	l.stop = 0
	l.end(^uint64(0), fmt.Errorf("%w: it could not be renewed in time", ErrLeaseLost))
	return unleased // the next renewal sets it
}

// end ends the terms up to an epoch.
func (l *lease) end(epoch uint64, cause error) {
	for t, h := range l.held {
		if t.epoch.known() <= epoch {
			h.end(cause)
		}
	}
}

// hold has a term end with the lease.
func (l *lease) hold(t *Term, end context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[t] = &hold{end: end}
}

// drop has a term rest on the lease no more, and says whether it could not have: it was ended, or had lapsed.
func (l *lease) drop(t *Term) (lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost = l.held[t].lapsed || t.epoch.known() <= l.fence
	delete(l.held, t)
	return lost
}

// covers says whether leader work in a term rests on the lease now.
func (l *lease) covers(t *Term) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[t]
	return h != nil && h.working && !h.lapsed && t.epoch.known() > l.fence && l.clock() < l.until
}

// await returns when leader work may begin in a term.
func (l *lease) await(ctx context.Context, t *Term) error {
	for {
		renewed, ok := l.begin(t)
		if ok {
			return nil
		}
		select {
		case <-renewed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin has a term rest on the lease from here on, if there is one; else a renewal has to be waited for.
func (l *lease) begin(t *Term) (renewed <-chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.epoch.known() <= l.fence || l.clock() >= l.stop {
		return l.renewed, false
	}
	l.held[t].working = true
	return nil, true
}

// complain says once that renewals fail.
func (l *lease) complain(err error) {
	if !l.failing {
		l.logger.Warn("the lease can't be renewed", "candidate", l.key.Candidate, "group", l.key.Group, "error", err)
	}
	l.failing = true
}

func (l *lease) recovered() {
	if l.failing {
		l.logger.Info("the lease is renewed again", "candidate", l.key.Candidate, "group", l.key.Group)
	}
	l.failing = false
}
