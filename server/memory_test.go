package server_test

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/leadership-journal/journald/projector"
)

// memory is a target that shows its entries in memory, once it is open.
type memory struct {
	mu       sync.Mutex
	revision uint64
	sequence uint64
	entries  map[string]projector.Entry
	open     chan struct{} // closed: writes go through
}

func newMemory() *memory {
	m := &memory{entries: map[string]projector.Entry{}, open: make(chan struct{})}
	return m
}

func (m *memory) PerComponent() bool { return false }

func (m *memory) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	select {
	case <-m.open:
	case <-ctx.Done():
		return projector.Receipt{}, projector.ErrUnknownOutcome
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sequence > doc.Sequence {
		return projector.Receipt{}, projector.ErrSuperseded
	}
	m.revision++
	m.sequence = doc.Sequence
	maps.Copy(m.entries, doc.Entries)
	return projector.Receipt{Revision: m.revision, Wrote: true, Changed: slices.Sorted(maps.Keys(doc.Entries))}, nil
}

func (m *memory) Watch(ctx context.Context, _ func(projector.Observation) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
