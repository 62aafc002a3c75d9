package main

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// configMap is the demo's target: one object in memory that shows every component, with a fence as a real one has.
type configMap struct {
	mu       sync.Mutex
	revision uint64
	sequence uint64
	entries  map[string]projector.Entry
	erased   int // entries that were there and then were not
	seen     chan projector.Observation
}

func newConfigMap() *configMap {
	return &configMap{entries: map[string]projector.Entry{}, seen: make(chan projector.Observation)}
}

// PerComponent implements [projector.Target].
func (m *configMap) PerComponent() bool { return false }

// Push implements [projector.Target].
func (m *configMap) Push(_ context.Context, doc *projector.Document) (projector.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sequence > doc.Sequence {
		return projector.Receipt{Revision: m.revision}, projector.ErrSuperseded
	}
	m.revision++
	m.sequence = doc.Sequence
	for name, e := range doc.Entries {
		if before, there := m.entries[name]; there && before.Leader != nil && e.Leader == nil {
			m.erased++
		}
		m.entries[name] = e
	}
	return projector.Receipt{Revision: m.revision, Wrote: true, Changed: slices.Sorted(maps.Keys(doc.Entries))}, nil
}

// Read implements [projector.Target].
func (m *configMap) Read(_ context.Context, components []string) ([]projector.Observation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.observe(components), nil
}

// observe is what the object shows. mu is held.
func (m *configMap) observe(components []string) []projector.Observation {
	shown := make([]projector.Observation, len(components))
	for i, name := range components {
		shown[i] = projector.Observation{
			Component: name, Revision: m.revision, Sequence: m.sequence, Entry: m.entries[name].Leader, Holder: "jm-1",
		}
	}
	return shown
}

// Watch implements [projector.Target].
func (m *configMap) Watch(ctx context.Context, report func(projector.Observation) error) error {
	for {
		select {
		case o := <-m.seen:
			if err := report(o); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// touch is a change of the object by somebody else that leaves the entries as they are: every watcher is told all of
// them again. It returns the revision.
func (m *configMap) touch(ctx context.Context, components []string) (uint64, error) {
	m.mu.Lock()
	m.revision++
	all := m.observe(components)
	m.mu.Unlock()
	for _, o := range all {
		select {
		case m.seen <- o:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return all[0].Revision, nil
}

func (m *configMap) shows(component string) *journal.LeaderInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[component].Leader
}
