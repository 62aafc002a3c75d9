// Package sessions has UUIDs stand for the sessions of scenarios. Names of those are free, and Flink's layouts hold
// nothing but UUIDs.
package sessions

import (
	"context"

	"github.com/google/uuid"

	"github.com/leadership-journal/journald/projector"
)

// Names are the sessions of one target, by the UUIDs that stand for them. They are for one goroutine at a time.
type Names map[uuid.UUID]string

// UUID stands for a session from now on, the same one whenever it is asked for.
func (n Names) UUID(session string) uuid.UUID {
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(session))
	n[id] = session
	return id
}

// Target shows the UUIDs in the place of the sessions.
func (n Names) Target(target projector.Target) projector.Target { return &renamed{target, n} }

type renamed struct {
	projector.Target
	names Names
}

// Push implements [projector.Target].
func (r *renamed) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	copied := *doc
	copied.Entries = make(map[string]projector.Entry, len(doc.Entries))
	for name, e := range doc.Entries {
		if e.Leader != nil {
			leader := *e.Leader
			leader.Session = r.names.UUID(leader.Session).String()
			e.Leader = &leader
		}
		copied.Entries[name] = e
	}
	return r.Target.Push(ctx, &copied)
}
