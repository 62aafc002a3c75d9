package testenv

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is one system for all tests of a package, started by the first that asks.
type shared[T interface{ Stop() error }] struct {
	mu      sync.Mutex
	asked   bool
	started T
	err     error
}

func (s *shared[T]) get(tb testing.TB, start func(context.Context) (T, error)) T {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		s.asked = true
		s.started, s.err = start(tb.Context())
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.started
}

// run runs the tests, then stops the system if it was started, and returns the exit code for TestMain.
func (s *shared[T]) run(tests interface{ Run() int }) int {
	code := tests.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked || s.err != nil {
		return code
	}
	if err := s.started.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
