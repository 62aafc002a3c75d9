package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
)

// holed is a log of ten records whose server has lost those of the given sequences. It is opened over a stream that
// allows what the journal's own would refuse.
func holed(t *testing.T, lost ...uint64) *Log {
	t.Helper()
	js, opts := external(t)
	cfg := (&Options{Replicas: 1, MaxBytes: opts.MaxBytes}).streamConfig()
	cfg.DenyDelete, cfg.DenyPurge = false, false
	s, err := js.CreateStream(t.Context(), cfg)
	require.NoError(t, err)
	for _, e := range confirms("a", 10) {
		it, err := newItem(&e)
		require.NoError(t, err)
		_, err = js.PublishMsg(t.Context(), it.msg)
		require.NoError(t, err)
	}
	for _, sequence := range lost {
		require.NoError(t, s.DeleteMsg(t.Context(), sequence))
	}
	cfg.DenyDelete, cfg.DenyPurge = true, true
	_, err = js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	return open(t, opts)
}

func followed(t *testing.T, l *Log, from uint64) (sequences []uint64, err error) {
	t.Helper()
	err = l.Follow(bounded(t, 30*time.Second), from, func(batch []journal.Record) error {
		for _, r := range batch {
			sequences = append(sequences, r.Sequence)
		}
		return nil
	})
	return sequences, err
}

func TestHoleStopsReading(t *testing.T) {
	for _, c := range []struct {
		name string
		lost []uint64
		from uint64
		want []uint64 // handed over before
		says string
	}{
		{"in the middle", []uint64{5}, 1, []uint64{1, 2, 3, 4}, "5 to 5 are missing, the newest is 10"},
		{"several", []uint64{4, 5, 6}, 2, []uint64{2, 3}, "4 to 6 are missing"},
		{"asked for", []uint64{7}, 7, nil, "7 to 7 are missing"},
		{"before what is asked for", []uint64{1, 2}, 2, nil, "2 to 2 are missing"},
		{"at the end", []uint64{10}, 8, []uint64{8, 9}, "10 to 10 are missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := holed(t, c.lost...)
			got, err := followed(t, l, c.from)
			require.ErrorIs(t, err, journal.ErrHole)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.want, got)
		})
	}
}

func TestReadSaysWhereTheHoleIs(t *testing.T) {
	l := holed(t, 5)
	records, err := l.Read(t.Context(), 3, 100)
	require.ErrorIs(t, err, journal.ErrHole)
	require.Len(t, records, 2)
	records, err = l.Read(t.Context(), 6, 2)
	require.NoError(t, err)
	require.EqualValues(t, 7, records[1].Sequence)
	for _, none := range []struct {
		from  uint64
		limit int
	}{{11, 5}, {math.MaxUint64, 5}, {1, 0}} {
		records, err = l.Read(t.Context(), none.from, none.limit)
		require.NoError(t, err)
		require.Empty(t, records)
	}
}

// A snapshot that is newer than the journal means that the journal has lost its end.
func TestBeyondTheEnd(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	_, err := l.Append(t.Context(), confirms("a", 3)...)
	require.NoError(t, err)
	_, err = followed(t, l, 6)
	require.ErrorIs(t, err, journal.ErrHole)
	require.ErrorContains(t, err, "4 to 5 are missing, the newest is 3")
}

func TestStreamGone(t *testing.T) {
	t.Parallel()
	js, opts := external(t)
	l := open(t, opts)
	require.NoError(t, js.DeleteStream(t.Context(), Name))
	_, err := followed(t, l, 1)
	require.ErrorIs(t, err, journal.ErrHole)
	require.ErrorContains(t, err, "gone as a whole")
}

func TestFollowStopsWithItsFunction(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	_, err := l.Append(t.Context(), confirms("a", 1000)...)
	require.NoError(t, err)
	enough := errors.New("enough")
	n := 0
	err = l.Follow(t.Context(), 1, func(batch []journal.Record) error {
		require.LessOrEqual(t, len(batch), readBatch)
		if n += len(batch); n > 100 {
			return enough
		}
		return nil
	})
	require.Equal(t, enough, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Follow(ctx, 1, nil), context.Canceled)
}

// A follower sees what is appended while it follows, and goes on through a closing that is not its own.
func TestFollowWhileAppending(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		const n = 2000
		ctx := bounded(t, time.Minute)
		appended := make(chan error, 1)
		go func() {
			for i := 0; i < n; i += 20 {
				if _, err := l.Append(ctx, confirms(fmt.Sprint(i), 20)...); err != nil {
					appended <- err
					return
				}
			}
			appended <- nil
		}()
		for i, r := range follow(t, l, 0, n) {
			require.EqualValues(t, i+1, r.Sequence)
		}
		require.NoError(t, <-appended)
	})
}

// Consumers don't pile up at the server.
func TestFollowLeavesNothingBehind(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	_, err := l.Append(t.Context(), confirm("a"))
	require.NoError(t, err)
	for range 20 {
		follow(t, l, 1, 1)
	}
	info, err := l.stream.Info(t.Context())
	require.NoError(t, err)
	require.Zero(t, info.State.Consumers)
}

func TestCloseEndsFollowing(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	_, err := l.Append(t.Context(), confirm("a"))
	require.NoError(t, err)
	seen := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- l.Follow(t.Context(), 1, func([]journal.Record) error { close(seen); return nil })
	}()
	<-seen
	closeLog(t, l)
	require.ErrorIs(t, <-ended, errClosed)
}

func TestPosition(t *testing.T) {
	sequence, count, at, ok := position("$JS.ACK.LEADERSHIP.cons.1.42.7.1700000000123456789.0")
	require.True(t, ok)
	require.EqualValues(t, 42, sequence)
	require.EqualValues(t, 7, count)
	require.Equal(t, time.Unix(1700000000, 123456789).UTC(), at)
	sequence, count, at, ok = position("$JS.ACK._.acchash.LEADERSHIP.cons.1.43.7.1700000000123456789.0.word")
	require.True(t, ok)
	require.EqualValues(t, 43, sequence)
	require.EqualValues(t, 7, count)
	require.Equal(t, time.Unix(1700000000, 123456789).UTC(), at)
	for _, bad := range []string{
		"", "_INBOX.x", "$JS.ACK.", "$JS.ACK.a.b.c", "$JS.ACK.a.b.1.x.1.1.1", "$JS.ACK.a.b.1.0.1.1.1", "$JS.ACK.a.b.1..1.1.1",
		"$JS.ACK.a.b.1.5", "$JS.ACK.a.b.1.5.6", "$JS.ACK.a.b.1.5.6.x.1", "$JS.ACK.a.b.1.123456789012345678901.6.1.1",
	} {
		_, _, _, ok := position(bad)
		require.False(t, ok, bad)
	}
}

func TestPositionNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sequence, _, _, ok := position("$JS.ACK." + rapid.StringMatching(`[0-9.a]{0,60}`).Draw(t, "reply"))
		require.Equal(t, ok, sequence != 0)
	})
}

// Every delivery that a server can make of ten records, some lost on the way, some twice, ends in all ten in order, or
// in a new session.
func TestHandKeepsOrder(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	ctx := t.Context()
	_, err := l.Append(ctx, confirms("a", 10)...)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		f := &follower{log: l, next: 1}
		want := uint64(1)
		f.fn = func(batch []journal.Record) error {
			for _, r := range batch {
				require.Equal(t, want, r.Sequence)
				want++
			}
			return nil
		}
		for range 20 {
			from := rapid.Uint64Range(1, 10).Draw(t, "from")
			to := rapid.Uint64Range(from, 10).Draw(t, "to")
			var batch []journal.Record
			for s := from; s <= to; s++ {
				batch = append(batch, journal.Record{Sequence: s})
			}
			before := f.next
			err := f.hand(ctx, batch)
			require.Equal(t, from > before, err != nil)
			require.Equal(t, want, f.next)
		}
	})
}

// A record that is there for the leader, and never comes from a replica, is a hole after some tries.
func TestReplicaThatSkips(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	_, err := l.Append(t.Context(), confirms("a", 3)...)
	require.NoError(t, err)
	f := &follower{log: l, next: 2, fn: func([]journal.Record) error { return nil }}
	for range maxSkips - 1 {
		err := f.hand(t.Context(), []journal.Record{{Sequence: 3}})
		require.Error(t, err)
		require.NotErrorIs(t, err, journal.ErrHole)
	}
	err = f.hand(t.Context(), []journal.Record{{Sequence: 3}})
	var final *finalError
	require.ErrorAs(t, err, &final)
	require.ErrorIs(t, final.err, journal.ErrHole)
	require.ErrorContains(t, final.err, "a replica leaves out records")
}
