package candidate

import (
	"context"
	"sync"
	"time"

	"github.com/leadership-journal/journald/policy"
)

// rest keeps a candidate that yielded from contending again at once: for the time that the group's policy has for it, and
// until all of its checks pass. Where journald elects, journald sees to that.
type rest struct {
	clock clock

	mu       sync.Mutex
	holdDown time.Duration
	since    map[string]time.Duration // by component
	unfit    bool                     // the last run of a check failed
	changed  chan struct{}            // closed and replaced when one of these has changed
}

func newRest(c clock) *rest {
	return &rest{clock: c, since: map[string]time.Duration{}, changed: make(chan struct{})}
}

func (r *rest) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *rest) configure(p *policy.Policy) {
	r.change(func() { r.holdDown = time.Duration(p.Health.HoldDown) })
}

// begin has a component rested from, from now on.
func (r *rest) begin(component string) { r.change(func() { r.since[component] = r.clock() }) }

// passing notes whether the last runs of all checks have passed.
func (r *rest) passing(all bool) { r.change(func() { r.unfit = !all }) }

// over waits until a component may be contended for; false says that ctx has ended.
func (r *rest) over(ctx context.Context, component string) bool {
	for ctx.Err() == nil {
		wait, blocked, changed := r.left(component)
		if !blocked {
			return true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// left is how long the rest from a component lasts at least, and whether anything stands against contending at all.
func (r *rest) left(component string) (wait time.Duration, blocked bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, resting := r.since[component]
	if !resting {
		return 0, false, r.changed
	}
	if wait = since + r.holdDown - r.clock(); wait > 0 {
		return wait, true, r.changed
	}
	if r.unfit {
		return time.Hour, true, r.changed
	}
	delete(r.since, component)
	return 0, false, r.changed
}
