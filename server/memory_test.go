package server_test

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// memory is a target that shows its entries in memory, once it is open.
type memory struct {
	mu       sync.Mutex
	revision uint64
	sequence uint64
	entries  map[string]projector.Entry
	open     chan struct{}               // closed: writes go through
	refuse   error                       // nil, or what comes of every write
	reading  func(context.Context) error // nil, or what comes before every read
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
	if m.refuse != nil {
		return projector.Receipt{}, m.refuse
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

func (m *memory) Read(ctx context.Context, components []string) ([]projector.Observation, error) {
	if m.reading != nil {
		if err := m.reading(ctx); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	shown := make([]projector.Observation, len(components))
	for i, name := range components {
		shown[i] = projector.Observation{
			Component: name, Revision: m.revision, Sequence: m.sequence, Entry: m.entries[name].Leader, Holder: "h",
		}
	}
	return shown, nil
}

// write has somebody else change what is shown.
func (m *memory) write(sequence uint64, component string, leader *journal.LeaderInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	m.sequence = sequence
	m.entries[component] = projector.Entry{Leader: leader}
}

func (m *memory) Watch(ctx context.Context, _ func(projector.Observation) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
