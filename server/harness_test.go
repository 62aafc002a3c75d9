package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/kv"
	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/records"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/server"
)

// harness is a server over a real journal and a real projector.
type harness struct {
	tb        testing.TB
	url       string
	handler   http.Handler // what answers there
	log       *stream.Log
	projector *projector.Projector
	registry  *prometheus.Registry
	target    *memory
}

type options struct {
	settings projector.Settings
	connect  projector.Connect
	size     func(context.Context) (server.Size, error)
	reload   func(context.Context) error
	alive    server.Alive
	writing  time.Duration // how long an answer may take
	catchUp  time.Duration // how long the fold may take to reach what was told elsewhere
	lag      *sync.Mutex   // nil, or what keeps records from the projector while it is locked
}

// lagging is a log whose records come when they are let through.
type lagging struct {
	journal.Log
	lag *sync.Mutex
}

func (l *lagging) Follow(ctx context.Context, from uint64, fn func([]journal.Record) error) error {
	return l.Log.Follow(ctx, from, func(batch []journal.Record) error {
		if l.lag != nil {
			l.lag.Lock()
			defer l.lag.Unlock()
		}
		return fn(batch)
	})
}

func start(tb testing.TB, o options) *harness {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	logger := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	h := &harness{tb: tb, registry: prometheus.NewRegistry(), target: newMemory()}
	if o.settings.Groups == nil {
		o.settings.Defaults = policy.Default()
	}
	if o.connect == nil {
		o.connect = func(string, journal.Target) (projector.Target, error) { return h.target, nil }
	}
	opening, opened := context.WithTimeout(ctx, time.Minute)
	defer opened()
	var err error
	h.log, err = stream.Open(opening, stream.Options{
		Embedded: &stream.Embedded{Dir: tb.TempDir(), MaxStore: 512 << 20}, Instance: "test", Logger: logger,
	})
	require.NoError(tb, err)
	bucket, err := kv.Open(opening, h.log.JetStream(), kv.Options{Logger: logger})
	require.NoError(tb, err)
	keys, err := alive.Open(opening, h.log.JetStream(), alive.Options{Logger: logger})
	require.NoError(tb, err)
	if o.alive == nil {
		o.alive = keys
	}
	metrics, err := server.NewMetrics(h.registry, server.MetricsOptions{MaxSeries: 100, Version: "test", Revision: "none"})
	require.NoError(tb, err)
	h.projector, err = projector.New(projector.Config{
		Instance: "test", Log: &lagging{h.log, o.lag}, Lease: h.log.NewLease(2 * time.Second), Connect: o.connect, Leaders: bucket.Target,
		Alive: keys, Settings: o.settings, Meter: metrics, Logger: logger,
	})
	require.NoError(tb, err)
	if o.size == nil {
		o.size = func(ctx context.Context) (server.Size, error) {
			info, err := h.log.Info(ctx)
			return server.Size{Last: info.Last, Bytes: info.Bytes, MaxBytes: info.MaxBytes}, err
		}
	}
	s, err := server.New(ctx, server.Options{
		Log: h.log, Reader: records.New(h.log.JetStream(), stream.Name), Projector: h.projector, Alive: o.alive, Metrics: metrics, Gatherer: h.registry,
		Size: o.size, Reload: o.reload, Logger: logger, Durability: func() (bool, string) { return true, "test" },
	})
	require.NoError(tb, err)
	if o.writing > 0 {
		s.SetWriteTimeout(o.writing)
	}
	if o.catchUp > 0 {
		s.SetCatchUp(o.catchUp)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	h.url, h.handler = "http://"+listener.Addr().String(), s.Handler()
	serving, folding := make(chan error, 1), make(chan error, 1)
	servingCtx, stopServing := context.WithCancel(ctx)
	go func() { serving <- s.Serve(servingCtx, listener) }()
	go func() { folding <- h.projector.Run(ctx) }()
	tb.Cleanup(func() {
		stopServing()
		require.NoError(tb, <-serving)
		cancel()
		require.NoError(tb, <-folding)
		ending, ended := context.WithTimeout(context.WithoutCancel(tb.Context()), 20*time.Second)
		defer ended()
		require.NoError(tb, bucket.Close(ending))
		require.NoError(tb, h.log.Close(ending))
	})
	h.until(func() bool { s := h.projector.Status(); return s.Active && s.CaughtUp })
	return h
}

// until waits for a condition that a record brings about.
func (h *harness) until(holds func() bool) {
	h.tb.Helper()
	deadline := time.After(20 * time.Second)
	for {
		changed := h.projector.Changed()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond): // the status changes without a record too
		case <-deadline:
			require.FailNow(h.tb, "the condition never held")
		}
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (h *harness) do(method, path, contentType, body string, headers ...string) answer {
	h.tb.Helper()
	request, err := http.NewRequestWithContext(h.tb.Context(), method, h.url+path, strings.NewReader(body))
	require.NoError(h.tb, err)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(h.tb, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(h.tb, err)
	return answer{response.StatusCode, response.Header, string(text)}
}

func (h *harness) post(body string) answer {
	return h.do("POST", "/v1/events", "application/json", body)
}

// say appends events in the short form and waits for them to be folded.
func (h *harness) say(events ...string) []api.Ack {
	h.tb.Helper()
	a := h.do("POST", "/v1/events?wait=applied", "application/json", "["+strings.Join(events, ",")+"]")
	require.Equal(h.tb, http.StatusCreated, a.status, a.body)
	var acks []api.Ack
	require.NoError(h.tb, json.Unmarshal([]byte(a.body), &acks))
	require.Len(h.tb, acks, len(events))
	return acks
}

// get reads an answer that must be 200.
func (h *harness) get(path string, into any) {
	h.tb.Helper()
	a := h.do("GET", path, "", "")
	require.Equal(h.tb, http.StatusOK, a.status, a.body)
	require.NoError(h.tb, json.Unmarshal([]byte(a.body), into), a.body)
}

func problemOf(tb testing.TB, a answer) api.Problem {
	tb.Helper()
	var p api.Problem
	require.Equal(tb, "application/problem+json", a.header.Get("Content-Type"), a.body)
	require.NoError(tb, json.Unmarshal([]byte(a.body), &p), a.body)
	require.Equal(tb, a.status, p.Status)
	return p
}
