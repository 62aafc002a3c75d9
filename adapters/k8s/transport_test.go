package k8s_test

import (
	"net/http"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/testenv"
)

// requests are those that a client made.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (r *requests) methods() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wrapped has every request pass before.
func wrapped(config *rest.Config, before func(*http.Request)) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			before(r)
			return next.RoundTrip(r)
		})
	})
	return config
}

func counted(config *rest.Config) (*rest.Config, *requests) {
	seen := &requests{}
	return wrapped(config, func(r *http.Request) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.all = append(seen.all, r.Method)
	}), seen
}

// interrupted has something happen before the next write.
func interrupted(config *rest.Config) (_ *rest.Config, between func(func())) {
	happens := make(chan func(), 1)
	return wrapped(config, func(r *http.Request) {
		if !testenv.Writes(r) {
			return
		}
		select {
		case f := <-happens:
			f()
		default:
		}
	}), func(f func()) { happens <- f }
}
