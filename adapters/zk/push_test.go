package zk_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	gozk "github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// world is one client of ours and one of the library's.
type world struct {
	testing.TB
	base   string // what all of it is below
	direct *gozk.Conn
	client *zk.Client
}

func newWorld(tb testing.TB, change ...func(*zk.Options)) *world {
	tb.Helper()
	servers := single.Servers(tb)
	options := zk.Options{Servers: servers, SessionTimeout: session, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&options)
	}
	client, err := zk.NewClient(context.WithoutCancel(tb.Context()), options)
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	return &world{TB: tb, base: "/" + uuid.NewString(), direct: connect(tb, servers), client: client}
}

// target is one whose path is below the world's.
func (w *world) target(layout, path string, change ...func(*journal.Target)) projector.Target {
	w.Helper()
	spec := journal.Target{Name: "zk", Kind: zk.Kind, Layout: layout, Path: w.base + path}
	for _, f := range change {
		f(&spec)
	}
	target, err := w.client.Connect(w.base[1:], spec)
	require.NoError(w, err)
	return target
}

func document(sequence uint64, component string, l *journal.LeaderInfo) *projector.Document {
	return &projector.Document{
		Group: "g", Component: component, Sequence: sequence, Projector: 3,
		Entries: map[string]projector.Entry{component: {Sequence: sequence, Epoch: 1, Phase: "confirmed", Leader: l}},
	}
}

func leader(address string) *journal.LeaderInfo {
	return &journal.LeaderInfo{Session: "01234567-89ab-cdef-fedc-ba9876543210", Candidate: "jm-1", Address: address}
}

func (w *world) push(target projector.Target, doc *projector.Document) projector.Receipt {
	w.Helper()
	receipt, err := target.Push(w.Context(), doc)
	require.NoError(w, err)
	return receipt
}

// data is what a node below the world's path holds.
func (w *world) data(path string) string {
	w.Helper()
	data, stat, err := w.direct.Get(path)
	require.NoError(w, err, path)
	require.Zero(w, stat.EphemeralOwner, "%s is persistent", path)
	return string(data)
}

func (w *world) make(path, data string, flags int32) string {
	w.Helper()
	for i := range path {
		if i > 0 && path[i] == '/' {
			_, err := w.direct.Create(path[:i], nil, gozk.FlagPersistent, gozk.WorldACL(gozk.PermAll))
			if err != nil {
				require.ErrorIs(w, err, gozk.ErrNodeExists)
			}
		}
	}
	made, err := w.direct.Create(path, []byte(data), flags, gozk.WorldACL(gozk.PermAll))
	require.NoError(w, err)
	return made
}

// TestLayouts has every byte that readers see, and where.
func TestLayouts(t *testing.T) {
	w := newWorld(t)
	flink := w.target(zk.Flink, "/flink/prod/leader/{component}")
	for component, id := range map[string]string{
		"resourcemanager": "resource_manager", "restserver": "rest_server", "dispatcher": "dispatcher",
		"job-0123456789abcdef0123456789abcdef": "job-0123456789abcdef0123456789abcdef",
	} {
		w.push(flink, document(7, component, leader("http://10.0.0.1:8081")))
		require.Equal(t, encodeFlink(t, *leader("http://10.0.0.1:8081")), []byte(w.data(w.base+"/flink/prod/leader/"+id+"/connection_info")))
		w.push(flink, document(8, component, nil))
		require.Empty(t, w.data(w.base+"/flink/prod/leader/"+id+"/connection_info"))
		require.Regexp(t, `^\{"sequence":8,"projector":3,"life":"[-0-9a-f]{36}"\}$`, w.data("/leadership-journal"+w.base+"/zk/"+component))
	}

	latch := w.target(zk.Latch, "/druid/overlord/_OVERLORD", func(s *journal.Target) { s.Components, s.Name = []string{"overlord"}, "latch" })
	w.push(latch, document(7, "overlord", leader("http://node-a:8090")))
	children, stat, err := w.direct.Children(w.base + "/druid/overlord/_OVERLORD")
	require.NoError(t, err)
	require.Equal(t, []string{"_c_7f0c6e0e-8f6a-5b0c-9d3e-6a6f75726e61-latch-0000000000"}, children)
	require.Zero(t, stat.EphemeralOwner)
	require.Equal(t, "http://node-a:8090", w.data(w.base+"/druid/overlord/_OVERLORD/"+children[0]))
	var f fence
	require.NoError(t, json.Unmarshal([]byte(w.data("/leadership-journal"+w.base+"/latch")), &f))
	require.Equal(t, fence{Sequence: 7, Projector: 3, Leader: leader("http://node-a:8090")}, f)
	w.push(latch, document(8, "overlord", nil))
	children, _, err = w.direct.Children(w.base + "/druid/overlord/_OVERLORD")
	require.NoError(t, err)
	require.Empty(t, children, "no leader is no node")

	plain := w.target(zk.JSON, "/leaders/{component}")
	w.push(plain, document(7, "web", leader("http://web-1")))
	require.JSONEq(t, `{"sequence": 7, "session": "01234567-89ab-cdef-fedc-ba9876543210", "candidate": "jm-1", "address": "http://web-1"}`,
		w.data(w.base+"/leaders/web"))
	w.push(plain, document(8, "web", nil))
	require.JSONEq(t, `{"sequence": 8}`, w.data(w.base+"/leaders/web"))
}

// TestASequenceAloneIsWrittenToo has a leader that comes back at a higher sequence, whose fence has to rise.
func TestASequenceAloneIsWrittenToo(t *testing.T) {
	w := newWorld(t)
	for _, layout := range []string{zk.Flink, zk.Latch, zk.JSON} {
		target := w.target(layout, "/"+layout+"/{component}", func(s *journal.Target) { s.Name = layout })
		w.push(target, document(7, "a", leader("http://a")))
		receipt := w.push(target, document(9, "a", leader("http://a")))
		require.True(t, receipt.Wrote)
		require.Empty(t, receipt.Changed)
		require.Contains(t, w.data("/leadership-journal"+w.base+"/"+layout+"/a"), `"sequence":9`)
	}
}

// TestARecordInOtherBlocksIsTheSame has one that a newer release of Java cut elsewhere.
func TestARecordInOtherBlocksIsTheSame(t *testing.T) {
	w := newWorld(t)
	target := w.target(zk.Flink, "/flink/{component}")
	w.push(target, document(7, "a", leader("http://a")))
	path := w.base + "/flink/a/connection_info"
	ours := w.data(path)
	theirs := ours[:4] + "\x77\x02\x00\x08\x77\x08" + ours[8:]
	require.Len(t, theirs, len(ours)+2)
	_, err := w.direct.Set(path, []byte(theirs), -1)
	require.NoError(t, err)
	require.False(t, w.push(target, fresh(document(7, "a", leader("http://a")))).Wrote)
	w.push(target, document(8, "a", leader("http://b")))
	require.Equal(t, encodeFlink(t, *leader("http://b")), []byte(w.data(path)))
}

// TestWhatNobodyCanReadIsTakenDown matters to Flink, whose readers fail for good on it.
func TestWhatNobodyCanReadIsTakenDown(t *testing.T) {
	w := newWorld(t)
	target := w.target(zk.Flink, "/flink/{component}")
	w.push(target, document(7, "a", nil))
	w.make(w.base+"/flink/a/connection_info", "garbage", gozk.FlagPersistent)
	require.True(t, w.push(target, fresh(document(7, "a", nil))).Wrote)
	require.Empty(t, w.data(w.base+"/flink/a/connection_info"))
}

// TestANewSessionAtTheSameAddressIsShown matters to a latch, whose data are the same.
func TestANewSessionAtTheSameAddressIsShown(t *testing.T) {
	w := newWorld(t)
	target := w.target(zk.Latch, "/latch/{component}")
	w.push(target, document(7, "a", leader("http://a")))
	again := leader("http://a")
	again.Session = uuid.NewString()
	require.Equal(t, []string{"a"}, w.push(target, document(9, "a", again)).Changed)
	seen, err := target.Read(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Equal(t, again, seen[0].Entry)
	require.Equal(t, uint64(9), seen[0].Sequence)
}

// TestWhatALayoutCannotHold is left out, with the rule.
func TestWhatALayoutCannotHold(t *testing.T) {
	w := newWorld(t)
	long := "http://" + strings.Repeat("x", 66_000)
	for name, c := range map[string]struct {
		layout, component, want string
		leader                  *journal.LeaderInfo
	}{
		"a name with a slash": {zk.JSON, "a/b", "the name of a znode can't have a /", leader("http://a")},
		"no UUID":             {zk.Flink, "a", `session "S1" is not a UUID`, &journal.LeaderInfo{Session: "S1", Address: "http://a"}},
		"a short UUID":        {zk.Flink, "b", "is not a UUID", &journal.LeaderInfo{Session: "0123456789abcdeffedcba9876543210", Address: "http://a"}},
		"no address":          {zk.Flink, "c", "no address", leader("")},
		"no id":               {zk.Latch, "d", "no address", leader("")},
		"a long address":      {zk.Flink, "e", "use a shorter one", leader(long)},
	} {
		target := w.target(c.layout, "/"+c.layout+"/{component}", func(s *journal.Target) { s.Name = c.layout })
		receipt := w.push(target, document(7, c.component, c.leader))
		require.False(t, receipt.Wrote, name)
		require.ErrorContains(t, receipt.Rejected[c.component], c.want, name)
	}
}

// TestALiveElectionIsLeftAlone has every sign by which one is known.
func TestALiveElectionIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	requireLeft := func(target projector.Target, component, want string) {
		t.Helper()
		for _, l := range []*journal.LeaderInfo{leader("http://ours"), leader("http://other")} {
			receipt, err := target.Push(t.Context(), document(7, component, l))
			require.ErrorIs(t, err, projector.ErrPermanent)
			require.ErrorContains(t, err, want)
			require.False(t, receipt.Wrote)
		}
	}
	w.make(w.base+"/latch/a/_c_"+uuid.NewString()+"-latch-", "http://node-a", gozk.FlagEphemeral|gozk.FlagSequence)
	latch := w.target(zk.Latch, "/latch/{component}", func(s *journal.Target) { s.Name = "latch" })
	requireLeft(latch, "a", "a live election is under way there")
	children, _, err := w.direct.Children(w.base + "/latch/a")
	require.NoError(t, err)
	require.Len(t, children, 1)

	w.make(w.base+"/flink/leader/latch/_c_"+uuid.NewString()+"-latch-", "", gozk.FlagEphemeral|gozk.FlagSequence)
	flink := w.target(zk.Flink, "/flink/leader/{component}", func(s *journal.Target) { s.Name = "flink" })
	requireLeft(flink, "restserver", "a live election is under way there")
	there, _, err := w.direct.Exists(w.base + "/flink/leader/rest_server/connection_info")
	require.NoError(t, err)
	require.False(t, there)

	w.make(w.base+"/json/a", "theirs", gozk.FlagEphemeral)
	requireLeft(w.target(zk.JSON, "/json/{component}"), "a", "belongs to the session of a process that lives")

	w.push(latch, document(7, "b", leader("http://ours")))
	w.make(w.base+"/latch/b/-marker", "http://pin", gozk.FlagPersistent)
	_, err = latch.Push(t.Context(), fresh(document(8, "b", leader("http://next"))))
	require.ErrorIs(t, err, projector.ErrPermanent)
	require.ErrorContains(t, err, "comes before ours, so that readers don't see it: -marker")

	w.push(latch, document(7, "c", leader("http://ours")))
	w.make(w.base+"/latch/c/_c_"+uuid.NewString()+"-latch-", "http://late", gozk.FlagEphemeral|gozk.FlagSequence)
	w.push(latch, fresh(document(8, "c", leader("http://next"))))
}

func fresh(doc *projector.Document) *projector.Document {
	doc.Fresh = true
	return doc
}

// TestTheChrootIsBeforeEveryPath has it made too.
func TestTheChrootIsBeforeEveryPath(t *testing.T) {
	root := "/" + uuid.NewString()
	w := newWorld(t, func(o *zk.Options) { o.Servers = []string{o.Servers[0] + root} })
	w.push(w.target(zk.JSON, "/leaders/{component}"), document(7, "web", leader("http://web-1")))
	require.Contains(t, w.data(root+w.base+"/leaders/web"), "http://web-1")
	require.Contains(t, w.data(root+"/leadership-journal"+w.base+"/zk/web"), "7")
}

// TestADigestKeepsOthersFromWritingNotFromReading goes over a connection that breaks, too.
func TestADigestKeepsOthersFromWritingNotFromReading(t *testing.T) {
	var proxy *testenv.TCPProxy
	w := newWorld(t, func(o *zk.Options) {
		proxy = testenv.NewTCPProxy(t, o.Servers[0])
		o.Digest, o.Servers = "journald:secret", []string{proxy.Addr()}
	})
	target := w.target(zk.Latch, "/latch/{component}")
	w.push(target, document(7, "web", leader("http://web-1")))
	for _, path := range []string{
		w.base, w.base + "/latch/web/_c_7f0c6e0e-8f6a-5b0c-9d3e-6a6f75726e61-latch-0000000000", "/leadership-journal" + w.base + "/zk/web",
	} {
		w.data(path)
		_, err := w.direct.Set(path, []byte("x"), -1)
		require.ErrorIs(t, err, gozk.ErrNoAuth, path)
	}
	proxy.Cut()
	proxy.Resume()
	require.Eventually(t, func() bool {
		_, err := target.Push(t.Context(), fresh(document(8, "web", leader("http://web-2"))))
		return err == nil
	}, patience, tick)

	other := newWorld(t, func(o *zk.Options) { o.Digest = "somebody:else" })
	other.base = w.base
	_, err := other.target(zk.Latch, "/latch/{component}").Push(t.Context(), document(9, "web", leader("http://web-3")))
	require.ErrorIs(t, err, projector.ErrPermanent)
	require.ErrorIs(t, err, gozk.ErrNoAuth)
}
