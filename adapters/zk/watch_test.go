package zk_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

const (
	patience = 30 * time.Second
	tick     = 10 * time.Millisecond
)

// watching is a watch that is under way.
type watching struct {
	*world
	seen chan projector.Observation
}

func (w *world) watch(target projector.Target) *watching {
	w.Helper()
	x := &watching{world: w, seen: make(chan projector.Observation, 1024)}
	ctx, cancel := context.WithCancel(w.Context())
	result := make(chan error, 1)
	go func() {
		result <- target.Watch(ctx, func(o projector.Observation) error { x.seen <- o; return nil })
	}()
	w.Cleanup(func() {
		cancel()
		require.ErrorIs(w, <-result, context.Canceled)
	})
	require.True(w, x.next().Gap)
	return x
}

func (x *watching) next() projector.Observation {
	x.Helper()
	select {
	case o := <-x.seen:
		return o
	case <-time.After(patience):
		require.Fail(x, "nothing was observed")
		return projector.Observation{}
	}
}

func observed(s *journal.Target) { s.Observe, s.Components = true, []string{"overlord"} }

// join has another participant contend, as Curator does, and returns its node.
func (w *world) join(id string) string {
	w.Helper()
	return w.make(w.base+"/druid/_OVERLORD/_c_"+uuid.NewString()+"-latch-", id, gozk.FlagEphemeral|gozk.FlagSequence)
}

// TestAWatchFollowsARealLatch has participants come and go, the leader too.
func TestAWatchFollowsARealLatch(t *testing.T) {
	w := newWorld(t)
	x := w.watch(w.target(zk.Latch, "/druid/_OVERLORD", observed))
	nobody := x.next()
	require.Nil(t, nobody.Entry)
	require.Equal(t, "overlord", nobody.Component)

	a := w.join("http://node-a:8090")
	first := x.next()
	_, stat, err := w.direct.Get(a)
	require.NoError(t, err)
	made := fmt.Sprintf("0x%x", stat.Czxid)
	require.Equal(t, &journal.LeaderInfo{Session: made, Candidate: "http://node-a:8090", Address: "http://node-a:8090"}, first.Entry)
	require.Equal(t, []string{"http://node-a:8090"}, first.Participants)
	require.Zero(t, first.Sequence)
	require.Greater(t, first.Revision, nobody.Revision)

	w.join("node-b")
	second := x.next()
	require.Equal(t, first.Entry, second.Entry)
	require.Equal(t, []string{"http://node-a:8090", "node-b"}, second.Participants)
	require.Greater(t, second.Revision, first.Revision)

	require.NoError(t, w.direct.Delete(a, -1))
	third := x.next()
	require.Equal(t, "node-b", third.Entry.Candidate)
	require.Empty(t, third.Entry.Address, "an id that is no URL is no address")
	require.Equal(t, []string{"node-b"}, third.Participants)
	require.Greater(t, third.Revision, second.Revision)
	require.Empty(t, x.seen)
}

// TestAWatchIsSilentWhereLeadershipStays rewrites data and makes neighbours.
func TestAWatchIsSilentWhereLeadershipStays(t *testing.T) {
	w := newWorld(t)
	a := w.join("http://node-a:8090")
	x := w.watch(w.target(zk.Latch, "/druid/_OVERLORD", observed))
	x.next()
	for range 50 {
		_, err := w.direct.Set(a, []byte("http://node-a:8090"), -1)
		require.NoError(t, err)
	}
	w.make(w.base+"/druid/_COORDINATOR", "", gozk.FlagPersistent)
	require.NoError(t, w.direct.Delete(a, -1))
	require.Nil(t, x.next().Entry)
	require.Empty(t, x.seen)
}

// TestAnObservedTargetIsNeverWritten refuses at once.
func TestAnObservedTargetIsNeverWritten(t *testing.T) {
	w := newWorld(t)
	_, err := w.target(zk.Latch, "/druid/_OVERLORD", observed).Push(t.Context(), document(7, "overlord", leader("http://a")))
	require.ErrorIs(t, err, projector.ErrPermanent)
}

// TestAWatchNoticesWhatItWasNotTold has an event lost on its way: the slow reading finds it, and begins with a gap.
func TestAWatchNoticesWhatItWasNotTold(t *testing.T) {
	w := newWorld(t, func(o *zk.Options) { o.Resync = 50 * time.Millisecond })
	target := w.target(zk.JSON, "/leaders/{component}")
	w.push(target, document(7, "web", leader("http://web-1")))
	x := w.watch(target)
	require.Equal(t, "http://web-1", x.next().Entry.Address)
	w.client.Deafen(w.base + "/leaders/web")
	_, err := w.direct.Set(w.base+"/leaders/web", []byte(`{"sequence":7,"session":"S","address":"http://theirs"}`), -1)
	require.NoError(t, err)
	require.True(t, x.next().Gap)
	require.Equal(t, "http://theirs", x.next().Entry.Address)
}

// TestAWatchComesBackWhenItMayReadAgain has the right to read taken away and given back. What changed meanwhile may not
// have been told: since CVE-2024-23944 servers keep events from who may not read the node.
func TestAWatchComesBackWhenItMayReadAgain(t *testing.T) {
	w := newWorld(t, func(o *zk.Options) { o.Resync = 50 * time.Millisecond })
	target := w.target(zk.JSON, "/leaders/{component}")
	w.push(target, document(7, "web", leader("http://web-1")))
	path := w.base + "/leaders/web"
	x := w.watch(target)
	x.next()
	_, err := w.direct.SetACL(path, gozk.WorldACL(gozk.PermWrite|gozk.PermAdmin), -1)
	require.NoError(t, err)
	_, err = w.direct.Set(path, []byte(`{"sequence":7,"session":"S","address":"http://theirs"}`), -1)
	require.NoError(t, err)
	_, err = w.direct.SetACL(path, gozk.WorldACL(gozk.PermAll), -1)
	require.NoError(t, err)
	for o := x.next(); o.Entry == nil || o.Entry.Address != "http://theirs"; {
		o = x.next()
	}
}

// TestAnOutageIsToldTwice has a gap when it has lasted a while, so that nobody takes what was seen for what is shown, and
// another with all that is shown when it is over.
func TestAnOutageIsToldTwice(t *testing.T) {
	var proxy *testenv.TCPProxy
	w := newWorld(t, func(o *zk.Options) {
		proxy = testenv.NewTCPProxy(t, o.Servers[0])
		o.Servers = []string{proxy.Addr()}
	})
	target := w.target(zk.JSON, "/leaders/{component}")
	w.push(target, document(7, "web", leader("http://web-1")))
	x := w.watch(target)
	x.next()
	proxy.Cut()
	require.True(t, x.next().Gap)
	proxy.Resume()
	require.True(t, x.next().Gap)
	require.Equal(t, "http://web-1", x.next().Entry.Address)
	require.Empty(t, x.seen)
}

// TestRevisionsRiseWhenNodesGo has an object and everything above it deleted.
func TestRevisionsRiseWhenNodesGo(t *testing.T) {
	w := newWorld(t)
	target := w.target(zk.JSON, "/a/b/{component}")
	w.push(target, document(7, "web", leader("http://web-1")))
	x := w.watch(target)
	last := x.next().Revision
	fence := "/leadership-journal" + w.base + "/zk/web"
	lives, _, err := w.direct.Children(fence)
	require.NoError(t, err)
	require.Len(t, lives, 1)
	require.NoError(t, w.direct.Delete(fence+"/"+lives[0], -1))
	for _, path := range []string{w.base + "/a/b/web", fence} {
		require.NoError(t, w.direct.Delete(path, -1))
		o := x.next()
		require.Greater(t, o.Revision, last)
		last = o.Revision
	}
	require.NoError(t, w.direct.Delete(w.base+"/a/b", -1))
	require.NoError(t, w.direct.Delete(w.base+"/a", -1))
	seen, err := target.Read(t.Context(), []string{"web", "never/there"})
	require.NoError(t, err)
	require.Greater(t, seen[0].Revision, last)
	require.Nil(t, seen[0].Entry)
	require.Equal(t, projector.Observation{Component: "never/there"}, seen[1])
}
