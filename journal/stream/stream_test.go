package stream

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

const testMaxStore = 256 << 20

// confirm is a valid event with an id of its own.
func confirm(id string) journal.Event {
	return journal.Event{
		ID: id, Source: "candidate/jm-1", Group: "flink", Component: "restserver", Time: time.Unix(1700000000, 0).UTC(),
		Data: &journal.Confirm{
			Session: "8f14e45f-ceea-467f-9575-a0c2c7b5d8f1", Candidate: "jm-1", Address: "http://10.0.0.17:8081", Attempt: 1,
		},
	}
}

func confirms(prefix string, n int) []journal.Event {
	events := make([]journal.Event, n)
	for i := range events {
		events[i] = confirm(fmt.Sprintf("%s-%d", prefix, i))
	}
	return events
}

func embedded(dir string) Options {
	return Options{Embedded: &Embedded{Dir: dir, MaxStore: testMaxStore}}
}

func bounded(tb testing.TB, d time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	tb.Cleanup(cancel)
	return ctx
}

// open opens a log until the end of the test.
func open(tb testing.TB, opts Options) *Log {
	tb.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	l, err := Open(bounded(tb, 30*time.Second), opts)
	require.NoError(tb, err)
	tb.Cleanup(func() { closeLog(tb, l) })
	return l
}

func closeLog(tb testing.TB, l *Log) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 20*time.Second)
	defer cancel()
	require.NoError(tb, l.Close(ctx))
}

// three are logs on a cluster of three embedded servers, with three copies of the stream.
func three(tb testing.TB) []*Log {
	tb.Helper()
	ports := freePorts(tb, 3)
	var routes []string
	for _, p := range ports {
		routes = append(routes, "nats://"+p)
	}
	logs := make([]*Log, 3)
	errs := make([]error, 3)
	ctx := bounded(tb, 60*time.Second)
	dir := tb.TempDir()
	var opening sync.WaitGroup
	for i := range logs {
		name := fmt.Sprintf("n%d", i)
		opening.Go(func() {
			logs[i], errs[i] = Open(ctx, Options{
				Replicas: 3, Instance: name, Logger: slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
				Embedded: &Embedded{
					Dir: filepath.Join(dir, name), MaxStore: testMaxStore, ServerName: name,
					Cluster: &Cluster{Name: "journal", Listen: ports[i], Routes: routes},
				},
			})
		})
	}
	opening.Wait()
	for i := range logs {
		require.NoError(tb, errs[i])
		tb.Cleanup(func() { closeLog(tb, logs[i]) })
	}
	return logs
}

// both runs a test on one node and on three.
func both(t *testing.T, test func(t *testing.T, l *Log)) {
	t.Helper()
	t.Run("one node", func(t *testing.T) { test(t, open(t, embedded(t.TempDir()))) })
	t.Run("three nodes", func(t *testing.T) { test(t, three(t)[0]) })
}

// all are the records of the journal, from its leader.
func all(tb testing.TB, l *Log) []journal.Record {
	tb.Helper()
	records, err := l.Read(bounded(tb, time.Minute), 0, 1<<30)
	require.NoError(tb, err)
	return records
}

// follow collects n records.
func follow(tb testing.TB, l *Log, from uint64, n int) []journal.Record {
	tb.Helper()
	ctx, cancel := context.WithCancel(bounded(tb, time.Minute))
	defer cancel()
	var got []journal.Record
	err := l.Follow(ctx, from, func(batch []journal.Record) error {
		if got = append(got, batch...); len(got) >= n {
			cancel()
		}
		return nil
	})
	require.ErrorIs(tb, err, context.Canceled)
	require.Len(tb, got, n)
	return got
}

func TestAppendAndFollow(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		ctx := bounded(t, time.Minute)
		acks, err := l.Append(ctx, confirm("a"))
		require.NoError(t, err)
		require.Equal(t, []journal.Ack{{Sequence: 1}}, acks)

		acks, err = l.Append(ctx, confirms("b", 3)...)
		require.NoError(t, err)
		require.Equal(t, []journal.Ack{{Sequence: 2}, {Sequence: 3}, {Sequence: 4}}, acks)

		last, err := l.Last(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 4, last)

		want := append([]journal.Event{confirm("a")}, confirms("b", 3)...)
		for _, records := range [][]journal.Record{follow(t, l, 0, 4), follow(t, l, 1, 4), all(t, l)} {
			for i, r := range records {
				require.EqualValues(t, i+1, r.Sequence)
				require.NoError(t, r.Err)
				require.Equal(t, want[i].Subject(), r.Subject)
				require.Equal(t, want[i], r.Event)
				require.WithinDuration(t, time.Now(), r.Time, time.Minute)
			}
		}
		require.EqualValues(t, 3, follow(t, l, 3, 2)[0].Sequence)
	})
}
