package client_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/internal/records"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/server"
)

const (
	group   = "flink"
	patient = 20 * time.Second // for what takes milliseconds when the machine has nothing else to do
)

// world is a journald in this process: an embedded NATS server, a projector and the API. It can be stopped, and started
// again at the same addresses.
type world struct {
	t          testing.TB
	dir        string
	http, nats string // addresses
	*running
}

// running is one life of it.
type running struct {
	log       *stream.Log
	projector *projector.Projector
	stop      func()
}

func newWorld(tb testing.TB) *world {
	w := &world{t: tb, dir: tb.TempDir(), http: address(tb), nats: address(tb)}
	w.start()
	tb.Cleanup(func() { w.stop() })
	return w
}

// address is one that was free a moment ago.
func address(tb testing.TB) string {
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	require.NoError(tb, l.Close())
	return l.Addr().String()
}

func logger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (w *world) start() {
	t := w.t
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{}
	opening, opened := context.WithTimeout(ctx, time.Minute)
	defer opened()
	var err error
	r.log, err = stream.Open(opening, stream.Options{
		Embedded: &stream.Embedded{Dir: w.dir, MaxStore: 512 << 20, Listen: w.nats}, Instance: "journald-0", Logger: logger(t),
	})
	require.NoError(t, err)
	keys, err := alive.Open(opening, r.log.JetStream(), alive.Options{Logger: logger(t)})
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	metrics, err := server.NewMetrics(registry, server.MetricsOptions{MaxSeries: 100, Version: "test", Revision: "none"})
	require.NoError(t, err)
	r.projector, err = projector.New(projector.Config{
		Instance: "journald-0", Log: r.log, Lease: r.log.NewLease(2 * time.Second), Alive: keys, Meter: metrics, Logger: logger(t),
		Connect:  func(string, journal.Target) (projector.Target, error) { panic("no group has a target") },
		Settings: projector.Settings{Defaults: policy.Default()},
	})
	require.NoError(t, err)
	api, err := server.New(ctx, server.Options{
		Log: r.log, Reader: records.New(r.log.JetStream(), stream.Name), Projector: r.projector, Alive: keys, Metrics: metrics,
		Gatherer: registry, Logger: logger(t), Durability: func() (bool, string) { return true, "test" },
		Size: func(ctx context.Context) (server.Size, error) {
			info, err := r.log.Info(ctx)
			return server.Size{Last: info.Last, Bytes: info.Bytes, MaxBytes: info.MaxBytes}, err
		},
	})
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", w.http)
	require.NoError(t, err)
	serving, folding := make(chan error, 1), make(chan error, 1)
	servingCtx, stopServing := context.WithCancel(ctx)
	go func() { serving <- api.Serve(servingCtx, listener) }()
	go func() { folding <- r.projector.Run(ctx) }()
	r.stop = func() {
		stopServing()
		require.NoError(t, <-serving)
		cancel()
		require.NoError(t, <-folding)
		ending, ended := context.WithTimeout(context.WithoutCancel(ctx), patient)
		defer ended()
		require.NoError(t, r.log.Close(ending))
		r.stop = func() {}
	}
	w.running = r
	w.await(func() bool { s := r.projector.Status(); return s.Active && s.CaughtUp })
}

// await waits for something that a record brings about.
func (w *world) await(holds func() bool) {
	w.t.Helper()
	deadline := time.After(patient)
	for {
		changed := w.projector.Changed()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond): // the status changes without a record too
		case <-deadline:
			require.FailNow(w.t, "the condition never held")
		}
	}
}

// say stores what others say, and waits for it to be folded by journald.
func (w *world) say(events ...journal.Event) uint64 {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patient)
	defer cancel()
	acks, err := w.log.Append(ctx, events...)
	require.NoError(w.t, err)
	last := acks[len(acks)-1].Sequence
	require.NoError(w.t, w.projector.Wait(ctx, last))
	return last
}

func (w *world) last() uint64 {
	w.t.Helper()
	last, err := w.log.Last(w.t.Context())
	require.NoError(w.t, err)
	return last
}

// kind is one way to a journal.
type kind struct {
	name, scheme string
	address      func(w *world) string
}

func kinds() []kind {
	return []kind{
		{"HTTP", "http://", func(w *world) string { return w.http }},
		{"NATS", "nats://", func(w *world) string { return w.nats }},
	}
}

// both runs a test over HTTP and over NATS, each in a world of its own.
func both(t *testing.T, test func(t *testing.T, w *world, k kind)) {
	t.Helper()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { test(t, newWorld(t), k) })
	}
}

// open opens a client until the end of the test.
func (k kind) open(tb testing.TB, addresses ...string) client.Client {
	tb.Helper()
	for i := range addresses {
		addresses[i] = k.scheme + addresses[i]
	}
	ctx, cancel := context.WithTimeout(tb.Context(), patient)
	defer cancel()
	c, err := client.Open(ctx, client.Options{Server: strings.Join(addresses, ","), Group: group, Instance: "test", Logger: logger(tb)})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	return c
}

// behind opens a client through a proxy, by which the network is disturbed.
func (k kind) behind(tb testing.TB, w *world) (client.Client, *testenv.TCPProxy) {
	tb.Helper()
	proxy := testenv.NewTCPProxy(tb, k.address(w))
	return k.open(tb, proxy.Addr()), proxy
}

// event is one with an id of its own.
func event(component string, data journal.Data) journal.Event {
	source := journal.SourceOf(data)
	if source == "" {
		source = "candidate/jm-1"
	}
	return journal.Event{ID: uuid.NewString(), Source: source, Group: group, Component: component, Time: time.Now().UTC(), Data: data}
}

func join(candidate string) journal.Event {
	return event("", &journal.Join{Candidate: candidate, Incarnation: "1", Components: []string{"rest"}})
}

func grant(candidate, session string) journal.Event {
	return event("rest", &journal.Grant{Candidate: candidate, Session: session})
}

// following is a call of Follow that goes on.
type following struct {
	t     testing.TB
	told  chan client.Standing
	ended chan error
	stop  context.CancelFunc
	last  uint64
}

func follow(tb testing.TB, c client.Client, candidate string) *following {
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	f := &following{t: tb, told: make(chan client.Standing, 1000), ended: make(chan error, 1), stop: cancel}
	go func() {
		f.ended <- c.Follow(ctx, candidate, func(s client.Standing) error { f.told <- s; return nil })
	}()
	tb.Cleanup(cancel)
	return f
}

// until reads what is told, up to where something holds of it.
func (f *following) until(holds func(client.Standing) bool) client.Standing {
	f.t.Helper()
	deadline := time.After(patient)
	for {
		select {
		case s := <-f.told:
			require.Greater(f.t, s.Sequence, f.last, "an older one came after a newer one")
			if f.last = s.Sequence; holds(s) {
				return s
			}
		case err := <-f.ended:
			require.FailNow(f.t, "Follow ended", "%v", err)
		case <-deadline:
			require.FailNow(f.t, "it was never told")
		}
	}
}

func (f *following) next() client.Standing {
	f.t.Helper()
	return f.until(func(client.Standing) bool { return true })
}

// leads says of a standing that a session is among its terms.
func leads(session string) func(client.Standing) bool {
	return func(s client.Standing) bool {
		for _, t := range s.Terms {
			if t.Session == session {
				return true
			}
		}
		return false
	}
}
