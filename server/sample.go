package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leadership-journal/journald/journal"
)

// Size is how much the journal holds, and how much it can.
type Size struct {
	Last     uint64 // newest sequence
	Bytes    uint64
	MaxBytes uint64 // 0: no limit is known
}

const (
	samplePeriod  = time.Second
	sampleTimeout = 2 * time.Second
	sampleTrust   = 10 * time.Second // after which the log counts as out of reach

	fullPercent = 95  // services' events are refused from here on
	overhead    = 256 // bytes that a record takes beside its text, at least
)

// sampler asks the log for its size once a second, so that requests and scrapes need not.
type sampler struct {
	ask func(context.Context) (Size, error)

	mu    sync.Mutex
	size  Size
	at    time.Time // of the last answer
	err   error     // of the last question
	added uint64    // accepted since the last answer
}

func newSampler(ask func(context.Context) (Size, error)) *sampler { return &sampler{ask: ask} }

func (s *sampler) run(ctx context.Context) {
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()
	for {
		s.sample(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *sampler) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	size, err := s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.size, s.at, s.added = size, time.Now(), 0
	}
}

// read is the last answer, and why it is not to be trusted, if it isn't.
func (s *sampler) read() (Size, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.at.IsZero() && s.err == nil:
		return s.size, fmt.Errorf("the log was not asked yet")
	case s.err != nil && time.Since(s.at) > sampleTrust:
		return s.size, s.err
	}
	return s.size, nil
}

// admit leaves the last of the room to decisions and operators: a journal that is full for good takes no decision
// that would help.
func (s *sampler) admit(in *input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := uint64(in.size + len(in.events)*overhead)
	if s.size.MaxBytes == 0 || (s.size.Bytes+s.added+more)*100 < s.size.MaxBytes*fullPercent || byOperators(in.events) {
		s.added += more
		return nil
	}
	return refuse(http.StatusInsufficientStorage, "journal-filling", fmt.Sprintf(
		"the journal holds %d of %d bytes, and what is left is for decisions; nothing was stored; raise nats.maxBytes",
		s.size.Bytes, s.size.MaxBytes))
}

func byOperators(events []journal.Event) bool {
	return !slices.ContainsFunc(events, func(e journal.Event) bool {
		switch e.Data.(type) {
		case *journal.Transfer, *journal.Exclude, *journal.Include, *journal.Pause, *journal.Resume, *journal.Policy, *journal.Withdraw:
			return false
		}
		return true
	})
}
