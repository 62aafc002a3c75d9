package zk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	gozk "github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/projector/conformance"
)

func TestConformance(t *testing.T) {
	for name, s := range styles() {
		t.Run(name, func(t *testing.T) {
			conformance.Suite{
				New:     func(tb testing.TB) conformance.Object { return s.newObject(tb, single.Servers(tb)) },
				Visible: s.visible,
			}.Run(t)
		})
	}
}

// style is a layout, read and written by hand.
type style struct {
	layout  string
	visible func(journal.LeaderInfo) journal.LeaderInfo
	entry   string // of the node that shows the component, below what the target is
	encode  func(tb testing.TB, l journal.LeaderInfo) []byte
	decode  func(tb testing.TB, data []byte, f fence) *journal.LeaderInfo
}

func styles() map[string]style {
	return map[string]style{
		"flink": {
			layout: zk.Flink, entry: "rest_server/connection_info", encode: encodeFlink, decode: decodeFlink,
			visible: func(l journal.LeaderInfo) journal.LeaderInfo {
				return journal.LeaderInfo{Session: l.Session, Address: l.Address}
			},
		},
		"latch": {
			layout: zk.Latch, entry: "restserver/_c_7f0c6e0e-8f6a-5b0c-9d3e-6a6f75726e61-latch-0000000000",
			encode:  func(_ testing.TB, l journal.LeaderInfo) []byte { return []byte(l.Address) },
			decode:  func(_ testing.TB, data []byte, f fence) *journal.LeaderInfo { return f.of(string(data)) },
			visible: func(l journal.LeaderInfo) journal.LeaderInfo { return l },
		},
		"json": {
			layout: zk.JSON, entry: "restserver", encode: encodeJSON, decode: decodeJSON,
			visible: func(l journal.LeaderInfo) journal.LeaderInfo { return l },
		},
	}
}

// fence is what lies beside an entry.
type fence struct {
	Sequence  uint64              `json:"sequence"`
	Projector uint64              `json:"projector"`
	Leader    *journal.LeaderInfo `json:"leader,omitempty"`
}

func (f fence) of(id string) *journal.LeaderInfo {
	if f.Leader != nil && f.Leader.Address == id {
		return f.Leader
	}
	return &journal.LeaderInfo{Session: "none of ours", Candidate: id, Address: id}
}

// Java's stream, of addresses that fit in one short block.
const flinkHead, flinkTail = "\xac\xed\x00\x05\x77", "sr\x00\x0ejava.util.UUID\xbc\x99\x03\xf7\x98\x6d\x85\x2f\x02\x00\x02J\x00\x0cleastSigBitsJ\x00\x0bmostSigBitsxp"

func encodeFlink(_ testing.TB, l journal.LeaderInfo) []byte {
	n, id := len(l.Address), uuid.MustParse(l.Session)
	text := flinkHead + string([]byte{byte(n + 2), 0, byte(n)}) + l.Address + flinkTail + string(id[8:]) + string(id[:8])
	return []byte(text)
}

func decodeFlink(tb testing.TB, data []byte, _ fence) *journal.LeaderInfo {
	if len(data) == 0 {
		return nil
	}
	rest, ok := strings.CutPrefix(string(data), flinkHead)
	require.True(tb, ok)
	address, rest, ok := strings.Cut(rest[3:], flinkTail)
	require.True(tb, ok)
	session, err := uuid.FromBytes([]byte(rest[8:] + rest[:8]))
	require.NoError(tb, err)
	return &journal.LeaderInfo{Session: session.String(), Address: address}
}

func encodeJSON(tb testing.TB, l journal.LeaderInfo) []byte {
	data, err := json.Marshal(l)
	require.NoError(tb, err)
	return data
}

func decodeJSON(tb testing.TB, data []byte, f fence) *journal.LeaderInfo {
	var e struct {
		journal.LeaderInfo
		Sequence uint64
	}
	require.NoError(tb, json.Unmarshal(data, &e))
	if e.Session == "" {
		return nil
	}
	return &e.LeaderInfo
}

// object is one znode and its fence, reached through a proxy for each server.
type object struct {
	style
	base    string // what all of it is below
	direct  *gozk.Conn
	proxies []*testenv.TCPProxy
	servers []string // the proxies'
	ended   context.Context

	mu    sync.Mutex
	fault conformance.Fault
	next  *hold
}

func (s style) newObject(tb testing.TB, servers []string) *object {
	o := &object{style: s, base: "/" + uuid.NewString(), direct: connect(tb, servers), ended: tb.Context()}
	for _, server := range servers {
		proxy := testenv.NewTCPProxy(tb, server)
		o.proxies = append(o.proxies, proxy)
		o.servers = append(o.servers, proxy.Addr())
	}
	return o
}

// connect is a client of the library's, beside ours.
func connect(tb testing.TB, servers []string) *gozk.Conn {
	conn, events, err := gozk.Connect(servers, session, gozk.WithLogInfo(false), gozk.WithLogger(silent{}))
	require.NoError(tb, err)
	tb.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (o *object) spec() journal.Target {
	return journal.Target{Name: "zk", Kind: zk.Kind, Layout: o.layout, Path: o.base + "/leaders/{component}"}
}

func (o *object) client(tb testing.TB) *zk.Client {
	c, err := zk.NewClient(context.WithoutCancel(tb.Context()), zk.Options{
		Servers: o.servers, SessionTimeout: session, Logger: slog.New(slog.DiscardHandler), Wrap: o.wrap,
	})
	require.NoError(tb, err)
	tb.Cleanup(c.Close)
	return c
}

func (o *object) Target(tb testing.TB) projector.Target {
	target, err := o.client(tb).Connect(o.base[1:], o.spec())
	require.NoError(tb, err)
	return target
}

func (o *object) entryPath() string { return o.base + "/leaders/" + o.entry }

func (o *object) fencePath() string {
	return "/leadership-journal" + o.base + "/zk/" + conformance.First
}

// get is a node's data and version; false: there is none.
func (o *object) get(tb testing.TB, path string) ([]byte, int32, bool) {
	data, stat, err := o.direct.Get(path)
	if errors.Is(err, gozk.ErrNoNode) {
		return nil, -1, false
	}
	require.NoError(tb, err)
	return data, stat.Version, true
}

func (o *object) readFence(tb testing.TB) fence {
	var f fence
	if data, _, there := o.get(tb, o.fencePath()); there {
		require.NoError(tb, json.Unmarshal(data, &f))
	}
	return f
}

// Read is what stands there when it is called, or something newer. A sync would not do: the server that leads answers it at
// once, and may not show yet what another one has acknowledged. A write of one's own comes after all of that.
func (o *object) Read(tb testing.TB) conformance.Shown {
	for {
		server := o.direct.Server()
		o.write(tb, o.base+"-barrier")
		if shown := o.read(tb); o.direct.Server() == server {
			return shown
		} // else it may have been read on another server than was written to
	}
}

// write changes a node that says nothing.
func (o *object) write(tb testing.TB, name string) {
	_, err := o.direct.Set(name, nil, -1)
	if errors.Is(err, gozk.ErrNoNode) {
		_, err = o.direct.Create(name, nil, 0, gozk.WorldACL(gozk.PermAll))
	}
	require.NoError(tb, err)
}

func (o *object) read(tb testing.TB) conformance.Shown {
	shown := conformance.Shown{Entries: map[string]journal.LeaderInfo{}, Others: o.others(tb)}
	data, _, there := o.get(tb, o.entryPath())
	f := o.readFence(tb)
	shown.Sequence = f.Sequence
	if there {
		if l := o.decode(tb, data, f); l != nil {
			shown.Entries[conformance.First] = *l
		}
	}
	return shown
}

// others is what lies beside the entry.
func (o *object) others(tb testing.TB) string {
	names, _, err := o.direct.Children(o.base + "/leaders")
	if !errors.Is(err, gozk.ErrNoNode) {
		require.NoError(tb, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(o.entry, name) })
	slices.Sort(names)
	data, version, _ := o.get(tb, o.noisePath())
	return fmt.Sprint(names, string(data), version)
}

func (o *object) noisePath() string { return o.base + "/leaders/noise" }

func (o *object) Write(tb testing.TB, change conformance.Change) {
	for {
		ops := o.ops(tb, change)
		if len(ops) == 0 {
			return
		}
		_, err := o.direct.Multi(ops...)
		if errors.Is(err, gozk.ErrBadVersion) || errors.Is(err, gozk.ErrNodeExists) || errors.Is(err, gozk.ErrNoNode) {
			continue
		}
		require.NoError(tb, err)
		return
	}
}

// ops are a change as one transaction. Who an id stands for is said beside a latch, also where no sequence is.
func (o *object) ops(tb testing.TB, change conformance.Change) []any {
	f := o.readFence(tb)
	data, _, there := o.get(tb, o.entryPath())
	entry := map[bool][]byte{true: data, false: nil}[there]
	for _, l := range change.Entries {
		if entry = nil; l != nil {
			entry, f.Leader = o.encode(tb, *l), l
		}
	}
	if change.Sequence != 0 {
		f.Sequence = change.Sequence
	}
	if change.Delete {
		entry = nil
	}
	var ops []any
	if change.Entries != nil || change.Delete {
		ops = append(ops, o.put(tb, o.entryPath(), entry)...)
	}
	if change.Unfence {
		f = fence{Leader: f.Leader}
	}
	var fenced []byte
	if (f.Sequence != 0 || o.layout == zk.Latch) && !change.Delete {
		var err error
		fenced, err = json.Marshal(f)
		require.NoError(tb, err)
	}
	ops = append(ops, o.put(tb, o.fencePath(), fenced)...)
	if change.Noise != "" {
		ops = append(ops, o.put(tb, o.noisePath(), []byte(change.Noise))...)
	}
	return ops
}

// put makes, changes or removes a node.
func (o *object) put(tb testing.TB, at string, data []byte) []any {
	was, version, there := o.get(tb, at)
	switch {
	case data == nil && there:
		var ops []any
		children, _, err := o.direct.Children(at)
		require.NoError(tb, err)
		for _, child := range children {
			ops = append(ops, &gozk.DeleteRequest{Path: at + "/" + child, Version: -1})
		}
		return append(ops, &gozk.DeleteRequest{Path: at, Version: version})
	case data == nil, string(was) == string(data):
		return nil
	case there:
		return []any{&gozk.SetDataRequest{Path: at, Data: data, Version: version}}
	}
	o.makeParents(tb, at)
	return []any{&gozk.CreateRequest{Path: at, Data: data, Acl: gozk.WorldACL(gozk.PermAll)}}
}

func (o *object) makeParents(tb testing.TB, at string) {
	for i := range at {
		if i > 0 && at[i] == '/' {
			_, err := o.direct.Create(at[:i], nil, gozk.FlagPersistent, gozk.WorldACL(gozk.PermAll))
			if !errors.Is(err, gozk.ErrNodeExists) {
				require.NoError(tb, err)
			}
		}
	}
}

func (o *object) Fail(_ testing.TB, fault conformance.Fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = fault
}

func (o *object) Drop(testing.TB) {
	for _, p := range o.proxies {
		p.Cut()
		p.Resume()
	}
}

// hold is a write that is kept back.
type hold struct{ reached, let, answered chan struct{} }

func (o *object) Hold(tb testing.TB) conformance.Held {
	h := &hold{reached: make(chan struct{}), let: make(chan struct{}), answered: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = h
	return conformance.Held{Reached: h.reached, Let: func() {
		close(h.let)
		select {
		case <-h.answered:
		case <-tb.Context().Done():
		}
	}}
}

// wrap is where writes fail and are held. One that is held is carried out also when who made it has given up.
func (o *object) wrap(ctx context.Context, write func(context.Context) error) error {
	o.mu.Lock()
	fault, h := o.fault, o.next
	o.next = nil
	o.mu.Unlock()
	switch {
	case h != nil:
		return o.hold(ctx, h, write)
	case fault == conformance.NotApplied:
		return gozk.ErrConnectionClosed
	case fault == conformance.Applied:
		if err := write(ctx); err != nil {
			return err
		}
		return gozk.ErrConnectionClosed
	}
	return write(ctx)
}

func (o *object) hold(ctx context.Context, h *hold, write func(context.Context) error) error {
	close(h.reached)
	result := make(chan error, 1)
	go func() {
		select {
		case <-h.let:
			result <- write(o.ended)
			close(h.answered)
		case <-o.ended.Done():
		}
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
