// Package alive keeps the liveness keys of candidates: one for each, in a NATS key-value bucket in memory, which a
// candidate renews for as long as it lives. A heartbeat leaves no trace in the journal; only what is decided from the
// silence of one does.
//
// Every write is on condition of the key's revision, and that is all that leases rest on. Who wants to end a candidate's
// lease writes a tombstone over the revision that it has seen: a candidate that has renewed meanwhile keeps its lease, one
// that has not finds the tombstone with its next renewal, and stops. Clocks are never compared, only lengths of time: a
// candidate counts its lease from before it sent a renewal, who ends it from after it saw one.
//
// The bucket may be lost with the servers that had it, and is made anew. Nothing follows from a key that is missing.
package alive

import (
	"errors"
	"fmt"

	"github.com/leadership-journal/journald/policy"
)

// Name is the name of the bucket.
const Name = "alive"

// Key names the key of one candidate.
type Key struct{ Group, Candidate string }

// Heartbeat is the value of a key: a renewal, or where Until is set a tombstone.
type Heartbeat struct {
	Incarnation string `json:"incarnation"` // of the candidate

	// Lease is for how long the candidate will count on this renewal, 0: it holds none. From when it has sent one that is
	// shorter than the one before, it counts on no more than that, whatever becomes of it. Of a tombstone it is what the
	// candidate may have counted on with the last renewal before.
	Lease policy.Duration `json:"lease,omitzero"`

	Run   uint64 `json:"run,omitzero"`   // the last passing run of its checks; information only
	Until uint64 `json:"until,omitzero"` // of a tombstone: the terms granted up to this record have ended, no newer one
}

// Entry is what a key shows.
type Entry struct {
	Heartbeat
	Revision uint64 `json:"revision"`
}

// ErrUnknownOutcome is wrapped by the error of a write that may have been carried out, or may still be. What stands in
// the key by then says which.
var ErrUnknownOutcome = errors.New("outcome unknown")

// Conflict is the error of a write whose key has another revision than the writer had seen. Nothing was written.
type Conflict struct {
	Key
	Found *Entry // what stands there; nil: no key
}

// Error says what stands there in place of what was expected.
func (c *Conflict) Error() string {
	if c.Found == nil {
		return fmt.Sprintf("the liveness key of %s in %s is gone", c.Candidate, c.Group)
	}
	return fmt.Sprintf("the liveness key of %s in %s has revision %d by now, of incarnation %s", c.Candidate, c.Group, c.Found.Revision,
		c.Found.Incarnation)
}
