package kv_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/kv"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/projector/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Suite{
		New:       newObject,
		Visible:   func(l journal.LeaderInfo) journal.LeaderInfo { return l },
		Unwatched: true,
	}.Run(t)
}

// object is the key of one component on a server of its own.
type object struct {
	gate   *gate
	proxy  *testenv.TCPProxy
	bucket jetstream.KeyValue // by another connection
	key    string
}

func newObject(tb testing.TB) conformance.Object {
	server, url := testenv.NATS(tb)
	o := &object{
		gate:  &gate{ended: make(chan struct{})},
		proxy: testenv.NewTCPProxy(tb, server.Addr().String()),
		key:   journal.Key(conformance.Group, conformance.First),
	}
	js := connect(tb, url)
	open(tb, js)
	var err error
	o.bucket, err = js.KeyValue(tb.Context(), kv.Name)
	require.NoError(tb, err)
	return o
}

func (o *object) Target(tb testing.TB) projector.Target {
	js := connect(tb, "nats://"+o.proxy.Addr())
	bucket := open(tb, &faulty{JetStream: js, gate: o.gate})
	tb.Cleanup(o.gate.end)
	return bucket.Target(conformance.Group)
}

func (o *object) Read(tb testing.TB) conformance.Shown {
	l, _ := o.read(tb)
	shown := conformance.Shown{Sequence: l.Sequence, Entries: map[string]journal.LeaderInfo{}}
	if l.Leader != nil {
		shown.Entries[conformance.First] = *l.Leader
	}
	return shown
}

func (o *object) read(tb testing.TB) (l kv.Leader, ok bool) {
	e, err := o.bucket.Get(tb.Context(), o.key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return l, false
	}
	require.NoError(tb, err)
	require.NoError(tb, json.Unmarshal(e.Value(), &l))
	return l, true
}

func (o *object) Write(tb testing.TB, change conformance.Change) {
	if change.Delete {
		require.NoError(tb, o.bucket.Delete(tb.Context(), o.key))
		return
	}
	l, _ := o.read(tb)
	if leader, ok := change.Entries[conformance.First]; ok {
		l.Leader = leader
	}
	if change.Sequence != 0 || change.Unfence {
		l.Sequence = change.Sequence
	}
	text, err := json.Marshal(l)
	require.NoError(tb, err)
	_, err = o.bucket.Put(tb.Context(), o.key, text)
	require.NoError(tb, err)
}

func (o *object) Fail(_ testing.TB, fault conformance.Fault) { o.gate.fail(fault) }

func (o *object) Hold(tb testing.TB) conformance.Held {
	h := &hold{reached: make(chan struct{}), let: make(chan struct{}), carriedOut: make(chan struct{})}
	o.gate.hold(h)
	return conformance.Held{Reached: h.reached, Let: func() {
		close(h.let)
		select {
		case <-h.carriedOut:
		case <-tb.Context().Done():
		}
	}}
}

func (o *object) Drop(testing.TB) {
	o.proxy.Cut()
	o.proxy.Resume()
}

// gate decides what becomes of the writes of all targets of an object.
type gate struct {
	ended chan struct{}
	once  sync.Once

	mu    sync.Mutex
	fault conformance.Fault
	next  *hold
}

type hold struct{ reached, let, carriedOut chan struct{} }

func (g *gate) end() { g.once.Do(func() { close(g.ended) }) }

func (g *gate) fail(fault conformance.Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = fault
}

func (g *gate) hold(h *hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = h
}

func (g *gate) take() (conformance.Fault, *hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.next
	g.next = nil
	return g.fault, h
}

// faulty is a JetStream whose lone writes pass a gate.
type faulty struct {
	jetstream.JetStream
	gate *gate
}

var errBusy = &jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}

func (f *faulty) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	fault, h := f.gate.take()
	if h != nil {
		close(h.reached)
		select {
		case <-h.let:
			defer close(h.carriedOut)
		case <-f.gate.ended:
			return nil, nats.ErrTimeout
		}
	}
	switch fault {
	case conformance.NotApplied:
		return nil, errBusy
	case conformance.Applied:
		if _, err := f.JetStream.PublishMsg(ctx, m, opts...); err != nil {
			return nil, err
		}
		return nil, nats.ErrTimeout
	}
	return f.JetStream.PublishMsg(ctx, m, opts...)
}

func connect(tb testing.TB, url string) jetstream.JetStream {
	tb.Helper()
	conn, err := nats.Connect(url, nats.ReconnectWait(time.Millisecond), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
	require.NoError(tb, err)
	tb.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(tb, err)
	return js
}

// open opens the bucket until the end of the test.
func open(tb testing.TB, js jetstream.JetStream) *kv.Bucket {
	tb.Helper()
	bucket, err := kv.Open(tb.Context(), js, kv.Options{Logger: logger(tb)})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 20*time.Second)
		defer cancel()
		require.NoError(tb, bucket.Close(ctx))
	})
	return bucket
}

func document(group, component string, sequence uint64, leader *journal.LeaderInfo) *projector.Document {
	return &projector.Document{Group: group, Component: component, Sequence: sequence, Projector: 1, Entries: map[string]projector.Entry{
		component: {Sequence: sequence, Epoch: sequence, Phase: "confirmed", Leader: leader},
	}}
}

func someLeader(properties ...string) *journal.LeaderInfo {
	l := &journal.LeaderInfo{Session: "s1", Candidate: "jm-1", Address: "http://jm-1:8081"}
	for _, p := range properties {
		name, value, _ := strings.Cut(p, "=")
		if l.Properties == nil {
			l.Properties = map[string]string{}
		}
		maps.Copy(l.Properties, map[string]string{name: value})
	}
	return l
}
