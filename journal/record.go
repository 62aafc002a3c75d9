package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Record is an event as it is stored: with its place in the journal, and the journal's own time.
type Record struct {
	Sequence uint64
	Time     time.Time // of the log, never of the publisher
	Subject  string
	Raw      []byte // what was stored, to the byte
	Event    Event  // what it says; incomplete where Err is set
	Err      error  // why it is not a valid event, or nil
}

// NewRecord reads a stored message. A message that is no valid event, or that is stored on a subject other than its
// event's, makes a record with Err: it is kept, changes nothing, and stops nobody.
func NewRecord(sequence uint64, at time.Time, subject string, raw []byte) Record {
	r := Record{Sequence: sequence, Time: at, Subject: subject, Raw: raw}
	if r.Event, r.Err = Decode(raw); r.Err != nil {
		return r
	}
	if want := r.Event.Subject(); want != subject {
		r.Err = &FieldError{"subject", fmt.Sprintf("the event belongs on %s, not on %s", want, subject)}
	}
	return r
}

// Ack says where an event is stored.
type Ack struct {
	Sequence  uint64
	Duplicate bool // it was stored before, under this sequence
}

var (
	// ErrHole says that sequences are missing: the storage lost or skips records, and what is folded from it is not
	// to be trusted.
	ErrHole = errors.New("the journal has a hole")

	// ErrFull says that the journal takes no more.
	ErrFull = errors.New("the journal is full")
)

// Log is where events are stored for good.
type Log interface {
	// Append stores all of the events, or none, and returns when they are on disk (fsync). Events that are
	// [Event.Validate]d by the caller keep their order and lie next to each other. An event whose source and id were
	// stored in the last two minutes is not stored again; its Ack names the first one.
	//
	// An error that wraps [ErrInvalid] or [ErrFull] means that nothing was stored. After any other error the events
	// may have been stored: append them again with the same ids.
	Append(ctx context.Context, events ...Event) ([]Ack, error)

	// Follow hands every record from a sequence on to fn, in order and without a gap, first what is stored and then
	// what comes, until ctx ends or fn fails. Records come in batches, as many as are at hand; fn may keep
	// them. It returns the error of fn, of ctx, or one that wraps [ErrHole].
	Follow(ctx context.Context, from uint64, fn func([]Record) error) error

	// Last is the newest sequence, as the log's leader knows it: every append acknowledged before the call is at or
	// below it.
	Last(ctx context.Context) (uint64, error)
}
