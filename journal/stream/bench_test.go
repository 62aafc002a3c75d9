package stream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/leadership-journal/journald/journal"
)

const (
	benchCallers = 256
	rawBatch     = 100
	benchRounds  = 3 // of both, in turn; the best of each counts, since others use the machine too
)

// quietOptions hold enough for a benchmark.
func quietOptions(tb testing.TB, listen string) Options {
	tb.Helper()
	return Options{Embedded: &Embedded{Dir: tb.TempDir(), MaxStore: 4 << 30, Listen: listen}}
}

// BenchmarkAppend has 256 callers append one event each, again and again, against atomic batches of 100 that are
// encoded beforehand. The ratio must be at least 0.8.
func BenchmarkAppend(b *testing.B) {
	l := open(b, quietOptions(b, ""))
	n := max(b.N, 20_000)
	var ours, raw float64
	b.ResetTimer()
	for round := range benchRounds {
		raw = max(raw, rawBatches(b, l, n))
		ours = max(ours, appendAll(b, l, n, round))
	}
	b.ReportMetric(ours, "events/s")
	b.ReportMetric(raw, "raw/s")
	b.ReportMetric(ours/raw, "ratio")
}

// appendAll appends n events and returns how many a second.
func appendAll(b *testing.B, l *Log, n, round int) float64 {
	b.Helper()
	var next atomic.Int64
	errs := make(chan error, benchCallers)
	start := time.Now()
	var callers sync.WaitGroup
	for range benchCallers {
		callers.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				if _, err := l.Append(b.Context(), confirm(fmt.Sprintf("bench-%d-%d", round, i))); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	callers.Wait()
	elapsed := time.Since(start)
	require.Empty(b, errs)
	return float64(n) / elapsed.Seconds()
}

// rawBatches publishes n messages in atomic batches and returns how many a second.
func rawBatches(b *testing.B, l *Log, n int) float64 {
	b.Helper()
	salt := nats.NewInbox()
	var batches [][]*nats.Msg
	for i := range n {
		if i%rawBatch == 0 {
			batches = append(batches, nil)
		}
		it, err := newItem(new(confirm(fmt.Sprintf("%s-%d", salt, i))))
		require.NoError(b, err)
		batches[len(batches)-1] = append(batches[len(batches)-1], it.msg)
	}
	start := time.Now()
	for _, batch := range batches {
		if _, err := jetstreamext.PublishMsgBatch(b.Context(), l.JetStream(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkReplay follows the journal from its start, decoded, against a bare ordered consumer. The ratio must be at
// least 0.7. With -benchtime=1000000x it has a million records.
func BenchmarkReplay(b *testing.B) {
	for _, listen := range []string{"", "127.0.0.1:0"} {
		b.Run("listen="+listen, func(b *testing.B) {
			l := open(b, quietOptions(b, listen))
			n := max(b.N, 200_000)
			fill(b, l, n)
			var ours, bare float64
			b.ResetTimer()
			for range benchRounds {
				bare = max(bare, bareConsumer(b, l, n))
				ours = max(ours, replay(b, l, n))
			}
			b.ReportMetric(ours, "records/s")
			b.ReportMetric(bare, "bare/s")
			b.ReportMetric(ours/bare, "ratio")
		})
	}
}

func fill(b *testing.B, l *Log, n int) {
	b.Helper()
	for i := 0; i < n; i += maxBatch {
		_, err := l.Append(b.Context(), confirms(fmt.Sprint(i), min(maxBatch, n-i))...)
		require.NoError(b, err)
	}
}

func replay(b *testing.B, l *Log, n int) float64 {
	b.Helper()
	start := time.Now()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	got := 0
	err := l.Follow(ctx, 1, func(batch []journal.Record) error {
		if got += len(batch); got == n {
			cancel()
		}
		return batch[0].Err
	})
	require.ErrorIs(b, err, context.Canceled)
	require.Equal(b, n, got)
	return float64(n) / time.Since(start).Seconds()
}

func bareConsumer(b *testing.B, l *Log, n int) float64 {
	b.Helper()
	cons, err := l.bulkJS.OrderedConsumer(b.Context(), Name, jetstream.OrderedConsumerConfig{})
	require.NoError(b, err)
	start := time.Now()
	done := make(chan struct{})
	got := 0
	consuming, err := cons.Consume(func(jetstream.Msg) {
		if got++; got == n {
			close(done)
		}
	}, jetstream.PullMaxMessages(5000))
	require.NoError(b, err)
	<-done
	elapsed := time.Since(start)
	consuming.Stop()
	return float64(n) / elapsed.Seconds()
}
