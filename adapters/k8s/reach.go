package k8s

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	lookEvery  = time.Second // while the API server is away, and half of that less
	lookLasts  = 2 * time.Second
	backSpread = 500 * time.Millisecond // over which watches begin again
)

// reach finds out when an API server that was away answers again. Thousands of watches may wait for that: one of them
// asks, for all.
type reach struct {
	mu      sync.Mutex
	looking *look // nil: nobody asks
}

// look is the time in which one of those who wait asks.
type look struct {
	ended    chan struct{}
	answered bool // read after ended
}

// away says whether an answer, 0 for none, is one of an API server that is not there: a gateway speaks for it, or it
// starts.
func away(status int) bool { return status == 0 || status >= http.StatusInternalServerError }

// answers waits until the API server answers, or ctx ends, and says whether it did. waited: not at the first time.
func (r *reach) answers(ctx context.Context, ask func(context.Context) bool) (answered, waited bool) {
	for {
		l, ours := r.join()
		if ours {
			l.answered, waited = l.ask(ctx, ask)
			r.leave(l)
			return l.answered, waited
		}
		select {
		case <-l.ended:
			if l.answered {
				return true, true
			}
		case <-ctx.Done():
			return false, true
		}
	}
}

func (r *reach) join() (l *look, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looking == nil {
		r.looking, ours = &look{ended: make(chan struct{})}, true
	}
	return r.looking, ours
}

func (r *reach) leave(l *look) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking = nil
	close(l.ended)
}

func (*look) ask(ctx context.Context, ask func(context.Context) bool) (answered, waited bool) {
	for ctx.Err() == nil {
		if ask(ctx) {
			return true, waited
		}
		waited = true
		pause(ctx, lookEvery/2+rand.N(lookEvery/2))
	}
	return false, true
}

// answersNow asks the API server for its version, which everybody may.
func (c *Client) answersNow(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookLasts)
	defer cancel()
	err := c.rest[ConfigMap].Get().AbsPath("/version").MaxRetries(0).Do(c.context(ctx)).Error()
	return err == nil || !away(code(err))
}

// pause waits for a time, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
