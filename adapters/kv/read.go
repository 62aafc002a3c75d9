package kv

import (
	"context"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Target is the bucket as one group's.
func (b *Bucket) Target(group string) projector.Target { return &target{b, group} }

// target shows the leaders of one group.
type target struct {
	*Bucket
	group string
}

// Read implements [projector.Target]. What stands in a key that somebody else wrote, and can't be read, is nothing.
func (t *target) Read(ctx context.Context, components []string) ([]projector.Observation, error) {
	shown := make([]projector.Observation, 0, len(components))
	for _, component := range components {
		e, err := t.read(ctx, journal.Key(t.group, component))
		if err != nil {
			return nil, err
		}
		shown = append(shown, projector.Observation{
			Component: component, Revision: e.revision, Sequence: e.leader.Sequence, Entry: e.leader.Leader,
		})
	}
	return shown, nil
}
