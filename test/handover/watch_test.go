package handover_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// shown is who holds each Lease of a namespace, as a watcher sees it.
type shown struct {
	mu      sync.Mutex
	holders map[string]string
	since   map[string]time.Time
	changed chan struct{}
}

func watchLeases(b *testing.B, api kubernetes.Interface, namespace string) *shown {
	s := &shown{holders: map[string]string{}, since: map[string]time.Time{}, changed: make(chan struct{})}
	w, err := api.CoordinationV1().Leases(namespace).Watch(b.Context(), metav1.ListOptions{})
	require.NoError(b, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			if lease, ok := e.Object.(*coordination.Lease); ok {
				s.see(lease)
			}
		}
	}()
	b.Cleanup(func() { w.Stop(); <-ended })
	return s
}

func (s *shown) see(l *coordination.Lease) {
	holder := ""
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders[l.Name] == holder {
		return
	}
	s.holders[l.Name], s.since[l.Name] = holder, time.Now()
	close(s.changed)
	s.changed = make(chan struct{})
}

// other waits until somebody holds a lease who is not this one, and says who, and since when.
func (s *shown) other(ctx context.Context, b *testing.B, lease, than string) (string, time.Time) {
	for {
		s.mu.Lock()
		holder, since, changed := s.holders[lease], s.since[lease], s.changed
		s.mu.Unlock()
		if holder != "" && holder != than {
			return holder, since
		}
		select {
		case <-changed:
		case <-ctx.Done():
			require.Fail(b, "nobody follows", "%s is held by %q", lease, holder)
			return "", time.Time{}
		}
	}
}

// quantile of some times; the slowest for 1.
func quantile(times []time.Duration, q float64) time.Duration {
	times = slices.Sorted(slices.Values(times))
	return times[min(int(q*float64(len(times))), len(times)-1)]
}
