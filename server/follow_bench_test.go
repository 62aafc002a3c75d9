package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/standing"
)

const (
	benchWatchers = 10000
	benchRecords  = 200 // with the broadcast
)

// BenchmarkFollow has 10,000 candidates of one group watch where they stand, each on a connection of its own in memory (a
// process may not have as many files as that takes), and stores
// records that concern one of them each, until that one was told. B/watcher is all that the process holds for one of them.
// cpu-µs/record is the processor time of the whole process for one record, the candidate's reading included;
// broadcast-µs/record is the same where each record wakes 10,000 goroutines that look where their candidate stands, and
// none of them writes anything.
func BenchmarkFollow(b *testing.B) {
	h := start(b, options{})
	h.joinAll(b)
	before := held()
	watchers := h.watchAll(b)
	perWatcher := float64(held()-before) / benchWatchers
	began := processor()
	b.ResetTimer()
	for n := range b.N {
		h.touch(b, watchers, n)
	}
	b.StopTimer()
	hub := (processor() - began) / time.Duration(b.N)

	stop := broadcast(h)
	began = processor()
	for n := range benchRecords {
		h.touch(b, watchers, n+b.N)
	}
	each := (processor() - began) / benchRecords
	stop()
	b.ReportMetric(perWatcher, "B/watcher")
	b.ReportMetric(float64(hub.Microseconds()), "cpu-µs/record")
	b.ReportMetric(float64(each.Microseconds()), "broadcast-µs/record")
}

func benchCandidate(i int) string { return fmt.Sprintf("jm-%d", i) }

// joinAll has every candidate lead a component of its own.
func (h *harness) joinAll(b *testing.B) {
	b.Helper()
	for first := 0; first < benchWatchers; first += 500 {
		var events []string
		for i := first; i < first+500; i++ {
			events = append(events, fmt.Sprintf(`{"kind":"grant","group":"flink","component":"c%d","candidate":%q,"session":"S%d"}`,
				i, benchCandidate(i), i))
		}
		h.say(events...)
	}
}

// watchAll has every candidate watch, and reads where each stands first.
func (h *harness) watchAll(b *testing.B) []*wire {
	b.Helper()
	l := &wires{dialed: make(chan *wire), closed: make(chan struct{})}
	served := make(chan error, 1)
	hs := &http.Server{Handler: h.handler, ReadHeaderTimeout: time.Minute}
	go func() { served <- hs.Serve(l) }()
	b.Cleanup(func() {
		require.NoError(b, hs.Close())
		require.ErrorIs(b, <-served, http.ErrServerClosed)
	})
	all := make([]*wire, benchWatchers)
	for i := range all {
		all[i] = l.dial("GET /v1/groups/flink/candidates/" + benchCandidate(i) + "/watch HTTP/1.1\r\nHost: x\r\n\r\n")
		all[i].standing()
	}
	return all
}

// wires is a listener on connections in memory.
type wires struct {
	dialed chan *wire
	closed chan struct{}
	once   sync.Once
}

func (l *wires) dial(request string) *wire {
	near, far := net.Pipe()
	w := &wire{Conn: far, said: make(chan struct{}, 1)}
	l.dialed <- w
	_, _ = near.Write([]byte(request)) // the server takes all of it
	return w
}

func (l *wires) Accept() (net.Conn, error) {
	select {
	case w := <-l.dialed:
		return w, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *wires) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *wires) Addr() net.Addr { return &net.TCPAddr{} }

// wire is the server's end of a connection whose other end takes whatever is written, and keeps nothing of it.
type wire struct {
	net.Conn
	said chan struct{} // of one: a standing was written since it was taken
}

func (w *wire) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("data: ")) {
		select {
		case w.said <- struct{}{}:
		default:
		}
	}
	return len(text), nil
}

// standing waits for a standing to be written.
func (w *wire) standing() { <-w.said }

// touch stores a record that concerns one candidate, and returns when that was told.
func (h *harness) touch(b *testing.B, watchers []*wire, n int) {
	b.Helper()
	i := n % len(watchers)
	_, err := h.log.Append(b.Context(), journal.Event{
		ID: fmt.Sprintf("ready-%d", n), Source: "candidate/" + benchCandidate(i), Group: "flink", Component: fmt.Sprintf("c%d", i), Time: time.Now().UTC(),
		Data: &journal.Ready{Session: fmt.Sprintf("S%d", i), Ready: n/len(watchers)%2 == 0},
	})
	require.NoError(b, err)
	watchers[i].standing()
}

// broadcast wakes a goroutine for each candidate with every record.
func broadcast(h *harness) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	for i := range benchWatchers {
		looking.Go(func() {
			var told standing.Candidate
			for ctx.Err() == nil {
				changed := h.projector.Changed()
				h.projector.Read(func(v *view.View) {
					if now := standing.Of(v, "flink", benchCandidate(i)); !standing.Same(now, told) {
						told = now
					}
				})
				select {
				case <-changed:
				case <-ctx.Done():
				}
			}
		})
	}
	return func() { cancel(); looking.Wait() }
}

// held is the memory that is in use, stacks included.
func held() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// processor is the processor time that the process has used.
func processor() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail for the process itself
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
