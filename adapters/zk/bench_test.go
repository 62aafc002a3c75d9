package zk_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// BenchmarkPush compares with the bare transaction that a push has to make.
func BenchmarkPush(b *testing.B) {
	w := newWorld(b)
	b.Run("target", func(b *testing.B) {
		target := w.target(zk.JSON, "/bench/{component}")
		for n := int64(1); b.Loop(); n++ {
			_, err := target.Push(b.Context(), document(uint64(n), "target", numbered(n)))
			require.NoError(b, err)
		}
	})
	b.Run("bare", func(b *testing.B) {
		entry, fence := w.make(w.base+"/bare/entry", "", gozk.FlagPersistent), w.make(w.base+"/bare/fence", "", gozk.FlagPersistent)
		for n := int32(0); b.Loop(); n++ {
			_, err := w.direct.Multi(
				&gozk.SetDataRequest{Path: entry, Data: encodeJSON(b, *numbered(int64(n))), Version: n},
				&gozk.SetDataRequest{Path: fence, Data: fmt.Appendf(nil, `{"sequence":%d,"projector":3}`, n), Version: n})
			require.NoError(b, err)
		}
	})
}

// The load of BenchmarkObserve.
const (
	observedNodes = 1000
	rewrittenIn   = 2 * time.Second
	rewrites      = 5 * observedNodes
)

// BenchmarkObserve says what it costs to watch 1,000 nodes that are all rewritten, with the same data, every 2 s: the
// processor time of this process with the watch, less that of the rewriting alone. Nothing may be reported.
func BenchmarkObserve(b *testing.B) {
	w := newWorld(b)
	target := w.target(zk.JSON, "/observed/{component}", func(s *journal.Target) {
		s.Observe = true
		for n := range observedNodes {
			s.Components = append(s.Components, fmt.Sprint(n))
		}
	})
	data := encodeJSON(b, *leader("http://jm-1:8081"))
	for n := range observedNodes {
		w.make(w.base+"/observed/"+fmt.Sprint(n), string(data), gozk.FlagPersistent)
	}
	for b.Loop() {
		alone := w.rewrite(b, data)
		ctx, cancel := context.WithCancel(b.Context())
		var reported atomic.Int64
		watched := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- target.Watch(ctx, func(o projector.Observation) error {
				if n := reported.Add(1); n == 2*observedNodes { // a gap and what is shown, for each
					close(watched)
				}
				return nil
			})
		}()
		<-watched
		both := w.rewrite(b, data)
		cancel()
		require.ErrorIs(b, <-ended, context.Canceled)
		require.EqualValues(b, 2*observedNodes, reported.Load(), "leadership did not change, and something was reported")
		took := rewrites / observedNodes * rewrittenIn
		b.ReportMetric(100*float64(both-alone)/float64(took), "percent-of-a-core")
		b.ReportMetric(100*float64(alone)/float64(took), "percent-of-a-core-rewriting")
	}
}

// rewrite returns the processor time that was used meanwhile.
func (w *world) rewrite(b *testing.B, data []byte) time.Duration {
	b.Helper()
	began, used := time.Now(), processorTime(b)
	due := time.NewTimer(0)
	defer due.Stop()
	for n := range rewrites {
		<-due.C
		_, err := w.direct.Set(w.base+"/observed/"+fmt.Sprint(n%observedNodes), data, -1)
		require.NoError(b, err)
		due.Reset(time.Until(began.Add(time.Duration(n+1) * rewrittenIn / observedNodes)))
	}
	return processorTime(b) - used
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
