package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

var errClosed = errors.New("the client is closed")

// closeTimeout bounds how long a client waits for what it has under way to end.
const closeTimeout = 5 * time.Second

// life is what everything that a client has under way rests on.
type life struct {
	ctx context.Context
	end context.CancelCauseFunc

	mu     sync.Mutex // of closed, and that nothing is counted after it
	closed bool
	calls  sync.WaitGroup
}

func newLife(ctx context.Context) *life {
	l := &life{}
	l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	return l
}

// enter begins a call, whose context ends with the client. leave ends the call.
func (l *life) enter(ctx context.Context) (within context.Context, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, errClosed
	}
	l.calls.Add(1)
	within, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return within, func() { stop(); cancel(nil); l.calls.Done() }, nil
}

// close ends all calls, and waits for them.
func (l *life) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end(errClosed)
	ended := make(chan struct{})
	go func() { l.calls.Wait(); close(ended) }()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("close the client: what it had under way did not end within %s; does a function that is told standings hang?",
			closeTimeout)
	}
}

// pause waits ever longer, up to 2 s, and at times a little longer than others do.
func pause(ctx context.Context, attempt int) {
	wait := min(50*time.Millisecond<<min(attempt, 10), 2*time.Second)
	timer := time.NewTimer(wait/2 + rand.N(wait/2)) //nolint:gosec // spreads load, nothing else
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// severity is that of one failure in a row: the first is news.
func severity(failures int) slog.Level {
	if failures > 1 {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}
