// Package client is the way of a candidate to its journal: it stores the candidate's events, renews its liveness key and
// tells it where it stands. One candidate, or a few of one group, share a client; there is one over HTTP, for which a
// journald answers, and one over NATS, which folds the group's records by itself.
package client

import (
	"context"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/standing"
)

// Client is what a candidate needs of its journal. Its methods may be called by many goroutines at one time. Each error
// says what was being done, and where the journal was looked for; [Final] tells whether trying again may help.
type Client interface {
	// Append stores events, all of them or none, and returns when they are folded, with what that did. An error that
	// wraps [journal.ErrInvalid] or [journal.ErrFull] means that nothing was stored. After any other error the events may
	// have been stored: append them again with the same ids, which is harmless, and tells.
	Append(ctx context.Context, events ...journal.Event) ([]Ack, error)

	// Renew writes a candidate's liveness key on condition that it has this revision, 0: that there is none. The error
	// is an [*alive.Conflict] where the key has another one; where the outcome is not known, the next renewal's conflict
	// shows what stands there.
	Renew(ctx context.Context, key alive.Key, beat alive.Heartbeat, revision uint64) (newer uint64, err error)

	// Follow tells where a candidate stands: as soon as that is known, and again after every change, never an older
	// standing after a newer one. Between two calls more than one thing may have changed. A connection that breaks is
	// made again, and nothing is missed. It returns when ctx ends, with its cause, or with the error of tell, or with one
	// that is [Final].
	Follow(ctx context.Context, candidate string, tell func(Standing) error) error

	// Group is the group that the client is for.
	Group() string

	// Close ends what the client has under way, within seconds, and gives its connections back.
	Close() error
}

// Ack answers for one event.
type Ack struct {
	Sequence  uint64
	Duplicate bool         // it had been stored before
	Verdict   view.Verdict // what folding it did
	Reason    string       // why, where the verdict alone does not say it
}

// Standing is where a candidate stands in its group.
type Standing = standing.Candidate

// Term is an open term that a candidate holds.
type Term = standing.Term

// Yield is an order to give a term up.
type Yield = standing.Yield
