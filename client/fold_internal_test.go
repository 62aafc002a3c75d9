package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// granted is a record at a second.
func granted(sequence uint64, second int64) journal.Record {
	return journal.Record{Sequence: sequence, Time: time.Unix(second, 0).UTC(), Event: journal.Event{
		ID: fmt.Sprint(sequence), Source: "candidate/jm-1", Group: "flink", Component: "rest",
		Data: &journal.Grant{Candidate: "jm-1", Session: fmt.Sprintf("S%d", sequence)},
	}}
}

// While a group's past is read nothing is told: it would be older than what the candidate may know.
func TestThePastIsNotTold(t *testing.T) {
	f := newFold("flink")
	told := make(chan Standing, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	require.NoError(t, f.apply([]journal.Record{granted(1, 1)}, false))
	go func() { ended <- f.follow(ctx, "jm-1", func(s Standing) error { told <- s; return nil }) }()
	require.NoError(t, f.apply([]journal.Record{granted(2, 2)}, false))
	require.NoError(t, f.apply([]journal.Record{granted(3, 3)}, false))
	require.NoError(t, f.apply(nil, true))
	require.EqualValues(t, 3, (<-told).Sequence)
	require.NoError(t, f.apply([]journal.Record{granted(4, 4)}, true))
	require.EqualValues(t, 4, (<-told).Sequence)
	require.Empty(t, told)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestVerdictsAreKeptForAWhile(t *testing.T) {
	f := newFold("flink")
	minute := int64(time.Minute / time.Second)
	for n := range 100 {
		require.NoError(t, f.apply([]journal.Record{granted(uint64(n+1), int64(n)*minute)}, true))
	}
	for sequence := uint64(95); sequence <= 100; sequence++ {
		ack, err := f.judged(t.Context(), sequence)
		require.NoError(t, err)
		require.Equal(t, Ack{Sequence: sequence, Verdict: view.Applied}, ack)
	}
	ack, err := f.judged(t.Context(), 1)
	require.NoError(t, err)
	require.Empty(t, ack.Verdict)
	require.Contains(t, ack.Reason, "too long ago")
	require.Less(t, len(f.verdicts), 15)
}

func TestWhoWaitsHearsOfTheEnd(t *testing.T) {
	f := newFold("flink")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := f.judged(ctx, 7)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "record 7 is stored, but what that did is not known")

	over := errors.New("over")
	ended := make(chan error, 2)
	go func() { _, err := f.judged(t.Context(), 7); ended <- err }()
	go func() { ended <- f.follow(t.Context(), "jm-1", nil) }()
	f.end(over)
	require.Equal(t, over, <-ended)
	require.Equal(t, over, <-ended)
}
