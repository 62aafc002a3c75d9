package projector

import (
	"context"
	"time"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/policy"
)

// Alive is where candidates show that they live. [alive.Bucket] is one.
type Alive interface {
	// Follow tells what all keys show until ctx ends, and when it can't.
	Follow(ctx context.Context, to alive.Listener) error

	// Expire puts a tombstone into a key on condition that it has this revision, 0: that there is none, and says whether it
	// stands there. False: the key has another revision. An error leaves that open.
	Expire(ctx context.Context, key alive.Key, tombstone alive.Heartbeat, revision uint64) (bool, error)
}

// sound is what is heard of the liveness keys at one time.
type sound struct {
	began, lost bool // the watch
	changes     []alive.Change
}

// ear hands what it is told to the loop. It is an [alive.Listener].
type ear struct {
	ctx context.Context
	to  chan<- sound
}

func (e *ear) Began()                         { e.hand(sound{began: true}) }
func (e *ear) Lost()                          { e.hand(sound{lost: true}) }
func (e *ear) Changed(changes []alive.Change) { e.hand(sound{changes: changes}) }

func (e *ear) hand(s sound) {
	select {
	case e.to <- s:
	case <-e.ctx.Done():
	}
}

// listen follows the liveness keys for as long as the projector runs, so that an instance which begins to act knows them.
func (p *Projector) listen(ctx context.Context) {
	err := p.cfg.Alive.Follow(ctx, &ear{ctx, p.sounds})
	if ctx.Err() == nil {
		p.cfg.Logger.Error("the liveness keys are not watched any more", "error", err)
	}
}

// hearing is the time from the beginning of a watch of the liveness keys to its end. What is known only by that ends with
// it. The loop owns it.
type hearing struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func newHearing(parent context.Context) hearing {
	h := hearing{}
	h.ctx, h.cancel = context.WithCancel(parent)
	return h
}

// hear takes note of a sound, and says whether there are conclusions to be drawn from it. Of renewals alone there are none,
// and there may be thousands in a second.
func (p *Projector) hear(ctx context.Context, s sound) bool {
	if s.began || s.lost {
		p.hearing.cancel()
		p.hearing = newHearing(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.began {
		p.core.Listen()
	}
	if s.lost {
		p.core.Deaf()
	}
	for i := range s.changes {
		c := &s.changes[i]
		p.core.Heard(Beat{
			Group: c.Group, Candidate: c.Candidate, Incarnation: c.Incarnation, Revision: c.Revision,
			Lease: time.Duration(c.Lease), Until: c.Until,
		}, c.Received.Sub(p.began))
	}
	return s.began || p.core.Restless()
}

// expire writes a tombstone, or finds that it can't, for as long as we act and the keys are watched.
func (p *Projector) expire(acting, hearing context.Context, e Expiry) {
	ctx, cancel := context.WithCancel(acting)
	defer cancel()
	defer context.AfterFunc(hearing, cancel)()
	key := alive.Key{Group: e.Holder.Group, Candidate: e.Holder.Candidate}
	tombstone := alive.Heartbeat{Incarnation: e.Holder.Incarnation, Lease: policy.Duration(e.Lease), Until: e.Until}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		written, err := p.cfg.Alive.Expire(ctx, key, tombstone, e.Revision)
		if err == nil {
			at := time.Since(p.began)
			p.say(ctx, func() { p.core.Expired(e, written, at) })
			return
		}
		if ctx.Err() != nil {
			return
		}
		p.cfg.Logger.Warn("a lease could not be ended", "group", key.Group, "candidate", key.Candidate, "error", err, "retryIn", wait)
		if !sleep(ctx, wait) {
			return
		}
	}
}
