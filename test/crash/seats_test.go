package crash_test

import (
	"context"
	"slices"
	"sync"

	"github.com/leadership-journal/journald/internal/testenv/journald"
)

// seats are the instances that services know of. They come and go.
type seats struct {
	mu      sync.Mutex
	taken   []*journald.Process
	changed chan struct{} // closed and replaced when somebody comes
}

func newSeats(all ...*journald.Process) *seats {
	s := &seats{changed: make(chan struct{})}
	for _, i := range all {
		s.add(i)
	}
	return s
}

// add seats an instance that listens.
func (s *seats) add(i *journald.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(slices.DeleteFunc(s.taken, (*journald.Process).Over), i)
	close(s.changed)
	s.changed = make(chan struct{})
}

// pick waits for an instance that has not ended: another one than the last, if there is one.
func (s *seats) pick(ctx context.Context, last *journald.Process) (*journald.Process, error) {
	for {
		s.mu.Lock()
		changed := s.changed
		var found *journald.Process
		for _, i := range s.taken {
			if !i.Over() && (found == nil || found == last) {
				found = i
			}
		}
		s.mu.Unlock()
		if found != nil {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
