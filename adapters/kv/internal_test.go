package kv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/projector"
)

func refused(code jetstream.ErrorCode) error {
	return fmt.Errorf("publish: %w", &jetstream.APIError{Code: 400, ErrorCode: code})
}

func TestWhatAFailedWriteMeans(t *testing.T) {
	for _, c := range []struct {
		err  error
		want error // nil: nothing was written, and it may be tried again
	}{
		{refused(10071), projector.ErrConflict},
		{refused(10164), projector.ErrConflict},
		{refused(10054), projector.ErrPermanent},
		{refused(10077), projector.ErrUnknownOutcome},
		{refused(10008), nil},
		{refused(10201), nil},
		{refused(10210), nil},
		{nats.ErrMaxPayload, projector.ErrPermanent},
		{nats.ErrNoResponders, nil},
		{jetstream.ErrNoStreamResponse, nil},
		{nats.ErrTimeout, projector.ErrUnknownOutcome},
		{nats.ErrConnectionClosed, projector.ErrUnknownOutcome}, // in the middle of a request too
		{context.DeadlineExceeded, projector.ErrUnknownOutcome},
		{jetstream.ErrInvalidJSAck, projector.ErrUnknownOutcome},
	} {
		err := classify(c.err)
		require.ErrorIs(t, err, c.err)
		for _, class := range []error{projector.ErrConflict, projector.ErrPermanent, projector.ErrUnknownOutcome} {
			require.Equal(t, errors.Is(c.want, class), errors.Is(err, class), "%v of %v", class, err)
		}
	}
}

func FuzzValue(f *testing.F) {
	f.Add([]byte(`{"sequence":7,"epoch":7,"phase":"confirmed","leader":{"session":"s1","address":"a","properties":{"a":"b"}}}`))
	f.Add([]byte(`{"sequence":7,"leader":null,"more":1}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, ok := decode(text)
		if !ok {
			return
		}
		again, err := l.encode()
		require.NoError(t, err)
		back, ok := decode(again)
		require.True(t, ok)
		require.True(t, l.equal(back))
	})
}
