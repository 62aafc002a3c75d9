package kv

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/projector"
)

// Codes of the JetStream API, from the server's errors.json.
const (
	codeWrongLastSequence         = 10071
	codeWrongLastSequenceConstant = 10164 // the same, where the server does not say which is right
	codeStoreFailed               = 10077
	codeMessageTooLarge           = 10054
)

// classify says what a failed write means. A refusal by the server proves that nothing was stored, save that its
// storage failed; so does a message that could not be sent. Anything else may have been stored.
func classify(err error) error {
	var refusal *jetstream.APIError
	switch {
	case errors.As(err, &refusal):
		return classifyRefusal(int(refusal.ErrorCode), err)
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrBadHeaderMsg):
		return fmt.Errorf("%w: %w", projector.ErrPermanent, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return err
	}
	return fmt.Errorf("%w: %w", projector.ErrUnknownOutcome, err)
}

func classifyRefusal(code int, err error) error {
	switch code {
	case codeWrongLastSequence, codeWrongLastSequenceConstant:
		return fmt.Errorf("%w: %w", projector.ErrConflict, err)
	case codeMessageTooLarge:
		return fmt.Errorf("%w: %w", projector.ErrPermanent, err)
	case codeStoreFailed:
		return fmt.Errorf("%w: %w", projector.ErrUnknownOutcome, err)
	}
	return err
}
