package alive

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
)

var (
	errUnconnected = errors.New("there is no connection to NATS, nothing was sent")
	errUnderway    = errors.New("another write of the key is under way, nothing was written; try again")
	errRefused     = errors.New("the key has another revision, nothing was written")
)

// Renew writes a key on condition that it has this revision, 0: that there is none, and returns the new one. The error is
// a [*Conflict] where it has another one. Any other error that does not wrap [ErrUnknownOutcome] means that nothing was
// written. A bucket that was lost is made anew.
func (b *Bucket) Renew(ctx context.Context, key Key, beat Heartbeat, revision uint64) (uint64, error) {
	newer, err := b.write(ctx, key, beat, revision)
	if err != nil {
		return 0, fmt.Errorf("renew the liveness key of %s in %s: %w", key.Candidate, key.Group, err)
	}
	return newer, nil
}

// Expire puts a tombstone into a key on condition that it has this revision, 0: that there is none. It says whether the
// tombstone stands there: this very one may do so already, where an answer was lost. False: the key has another revision.
// An error leaves that open.
func (b *Bucket) Expire(ctx context.Context, key Key, tombstone Heartbeat, revision uint64) (bool, error) {
	_, err := b.write(ctx, key, tombstone, revision)
	if c, ok := errors.AsType[*Conflict](err); ok {
		if c.Found == nil {
			b.doubt()
			return false, nil
		}
		return c.Found.Heartbeat == tombstone, nil
	}
	if err != nil {
		return false, fmt.Errorf("put a tombstone into the liveness key of %s in %s: %w", key.Candidate, key.Group, err)
	}
	return true, nil
}

// Get is what a key shows, by the bucket's leader; nil: there is none.
func (b *Bucket) Get(ctx context.Context, key Key) (*Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	entry, marker, err := b.read(ctx, key)
	if noStream(err) {
		if _, err := b.ensure(ctx); err != nil {
			return nil, err
		}
		entry, marker, err = b.read(ctx, key)
	}
	if marker || err != nil {
		return nil, err
	}
	return entry, nil
}

// read is what stands in a key, and whether that is a marker of its deletion.
func (b *Bucket) read(ctx context.Context, key Key) (entry *Entry, marker bool, err error) {
	if !b.js.Conn().IsConnected() {
		return nil, false, errUnconnected
	}
	stream, err := b.js.Stream(ctx, streamName)
	var m *jetstream.RawStreamMsg
	if err == nil {
		m, err = stream.GetLastMsgForSubject(ctx, subjectPrefix+journal.Key(key.Group, key.Candidate))
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the liveness key of %s in %s: %w", key.Candidate, key.Group, err)
	}
	return &Entry{decode(m.Data), m.Sequence}, deleted(m.Header), nil
}

// decode reads a value. One that can't be read is nobody's.
func decode(text []byte) (beat Heartbeat) {
	if json.Unmarshal(text, &beat) != nil {
		return Heartbeat{}
	}
	return beat
}

// deleted says whether a message marks that its key is gone, as clients of key-value buckets write it.
func deleted(h nats.Header) bool {
	operation := h.Get("KV-Operation")
	return operation != "" && !strings.EqualFold(operation, "PUT") || h.Get("Nats-Marker-Reason") != ""
}

// write stores a value, having made the bucket where there is none.
func (b *Bucket) write(ctx context.Context, key Key, beat Heartbeat, revision uint64) (uint64, error) {
	text, err := json.Marshal(beat)
	if err != nil {
		return 0, fmt.Errorf("write it as JSON: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	newer, err := b.put(ctx, key, text, revision)
	if noStream(err) {
		if _, err := b.ensure(ctx); err != nil {
			return 0, err
		}
		newer, err = b.put(ctx, key, text, revision)
	}
	if errors.Is(err, errRefused) {
		return b.refused(ctx, key, text, revision)
	}
	return newer, err
}

// put sends a value once.
func (b *Bucket) put(ctx context.Context, key Key, text []byte, revision uint64) (uint64, error) {
	if !b.js.Conn().IsConnected() {
		return 0, errUnconnected
	}
	ack, err := b.js.PublishMsg(ctx, &nats.Msg{
		Subject: subjectPrefix + journal.Key(key.Group, key.Candidate), Data: text,
		Header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(revision, 10)}},
	}, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, classify(err)
	}
	return ack.Sequence, nil
}

// refused finds out what stands in the way. A key that was deleted is none.
func (b *Bucket) refused(ctx context.Context, key Key, text []byte, revision uint64) (uint64, error) {
	found, marker, err := b.read(ctx, key)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w; what it has is not known: %w", errRefused, err)
	case marker && revision == 0:
		if newer, err := b.put(ctx, key, text, found.Revision); !errors.Is(err, errRefused) {
			return newer, err
		}
		return 0, errUnderway
	case marker:
		found = nil
	}
	if found == nil && revision == 0 || found != nil && found.Revision == revision {
		return 0, errUnderway
	}
	return 0, &Conflict{Key: key, Found: found}
}

// Codes of the JetStream API, from the server's errors.json.
const (
	codeWrongLastSequence         = 10071
	codeWrongLastSequenceConstant = 10164 // the same, where a write of the key is under way
	codeStoreFailed               = 10077
)

// classify says what a failed write means. A refusal by the server proves that nothing was written, save that its
// storage failed; so does a message that could not be sent. Anything else may have been.
func classify(err error) error {
	var refusal *jetstream.APIError
	switch {
	case errors.As(err, &refusal):
		switch refusal.ErrorCode {
		case codeWrongLastSequence, codeWrongLastSequenceConstant:
			return errRefused
		case codeStoreFailed:
			return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
		return err
	case noStream(err), errors.Is(err, nats.ErrMaxPayload):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// noStream says that nobody answered for the bucket: it is gone, or has no leader.
func noStream(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound)
}
