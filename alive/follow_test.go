package alive_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/internal/testenv"
)

// ear notes what it is told.
type ear struct {
	t    *testing.T
	told chan string
}

func (e *ear) Began() { e.told <- "began" }
func (e *ear) Lost()  { e.told <- "lost" }

func (e *ear) Changed(changes []alive.Change) {
	for _, c := range changes {
		if c.Received.IsZero() || time.Since(c.Received) > limit {
			e.told <- "received at no time"
		}
		e.told <- fmt.Sprint(c.Group, "/", c.Candidate, " ", c.Incarnation, " ", c.Until)
	}
}

// listen follows a bucket until the end of the test.
func listen(t *testing.T, b *alive.Bucket) *ear {
	t.Helper()
	e := &ear{t: t, told: make(chan string, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Follow(ctx, e) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			require.ErrorIs(t, err, context.Canceled)
		case <-time.After(limit):
			require.Fail(t, "Follow does not return")
		}
	})
	return e
}

// hears waits for something to be told, and gives back what was told before.
func (e *ear) hears(want string) (before []string) {
	e.t.Helper()
	deadline := time.After(limit)
	for {
		select {
		case got := <-e.told:
			if got == want {
				return before
			}
			before = append(before, got)
		case <-deadline:
			require.Failf(e.t, "never told", "%s, but %s", want, strings.Join(before, ", "))
		}
	}
}

// renewer keeps one key.
type renewer struct {
	t        *testing.T
	b        *alive.Bucket
	revision uint64
	run      uint64
}

// renews tries until it has renewed its key, and returns what is told of it.
func (r *renewer) renews() string {
	r.t.Helper()
	r.run++
	incarnation := fmt.Sprint("run-", r.run)
	deadline := time.Now().Add(limit)
	for {
		newer, err := r.b.Renew(r.t.Context(), k1, beat(incarnation), r.revision)
		if err == nil {
			r.revision = newer
			return "flink.prod/jm/1 " + incarnation + " 0"
		}
		require.True(r.t, time.Now().Before(deadline), "%v", err)
		if entry, err := r.b.Get(r.t.Context(), k1); err == nil {
			if r.revision = 0; entry != nil {
				r.revision = entry.Revision
			}
		}
	}
}

func TestFollow(t *testing.T) {
	onBoth(t, func(t *testing.T, b *alive.Bucket, _ jetstream.JetStream) {
		r := &renewer{t: t, b: b}
		before := r.renews()
		e := listen(t, b)
		require.Empty(t, e.hears("began"))
		require.Empty(t, e.hears(before))
		for range 3 {
			require.Empty(t, e.hears(r.renews()))
		}
		written, err := b.Expire(t.Context(), k1, tombstone(9), r.revision)
		require.NoError(t, err)
		require.True(t, written)
		require.Empty(t, e.hears("flink.prod/jm/1 1 9"))
	})
}

func TestManyChangesComeInOrder(t *testing.T) {
	_, url := testenv.NATS(t)
	b := open(t, connect(t, url), 1)
	e := listen(t, b)
	e.hears("began")
	var want []string
	for i := range 500 {
		_, err := b.Renew(t.Context(), alive.Key{Group: "g", Candidate: fmt.Sprint(i)}, beat("1"), 0)
		require.NoError(t, err)
		want = append(want, fmt.Sprint("g/", i, " 1 0"))
	}
	last := want[len(want)-1]
	require.Equal(t, want[:len(want)-1], e.hears(last))
}

// TestRubbishIsPassedOver has clients write what is no heartbeat. A value that can't be read is nobody's.
func TestRubbishIsPassedOver(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	b := open(t, js, 1)
	e := listen(t, b)
	e.hears("began")
	plain, err := js.KeyValue(t.Context(), alive.Name)
	require.NoError(t, err)
	for _, key := range []string{"one", "a.b.c", "g.=zz"} {
		_, err = plain.Put(t.Context(), key, []byte("{}"))
		require.NoError(t, err)
	}
	_, err = plain.Put(t.Context(), "g.k", []byte("no JSON"))
	require.NoError(t, err)
	require.Empty(t, e.hears("g/k  0"))
	require.NoError(t, plain.Delete(t.Context(), "g.k"))
	r := &renewer{t: t, b: b}
	require.Empty(t, e.hears(r.renews()))
}

func TestALostBucketIsNoticed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *alive.Bucket, js jetstream.JetStream) {
		r := &renewer{t: t, b: b}
		r.renews()
		e := listen(t, b)
		e.hears("began")
		require.NoError(t, js.DeleteStream(t.Context(), "KV_alive"))
		e.hears("lost")
		require.Empty(t, e.hears("began"))
		require.Empty(t, e.hears(r.renews()))
	})
}

// TestAKeyThatIsGoneIsNoticed when its tombstone is to be written: of deletions nothing is told.
func TestAKeyThatIsGoneIsNoticed(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	b := open(t, js, 1)
	r := &renewer{t: t, b: b}
	e := listen(t, b)
	e.hears("began")
	require.Empty(t, e.hears(r.renews()))
	stream, err := js.Stream(t.Context(), "KV_alive")
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	written, err := b.Expire(t.Context(), k1, tombstone(9), r.revision)
	require.NoError(t, err)
	require.False(t, written)
	require.Equal(t, []string{"lost"}, e.hears("began"))
}

// TestAStalledConnectionIsNoticed has the network take nothing and bring nothing, with no connection broken.
func TestAStalledConnectionIsNoticed(t *testing.T) {
	t.Parallel()
	server, url := testenv.NATS(t)
	r := &renewer{t: t, b: open(t, connect(t, url), 1)}
	proxy := testenv.NewTCPProxy(t, server.Addr().String())
	e := listen(t, open(t, connect(t, "nats://"+proxy.Addr()), 1))
	e.hears("began")
	require.Empty(t, e.hears(r.renews()))
	proxy.Freeze()
	require.Empty(t, e.hears("lost"))
	missed := r.renews()
	proxy.Thaw()
	e.hears("began")
	require.Empty(t, e.hears(missed))
}

func TestABrokenConnectionIsNoticed(t *testing.T) {
	server, url := testenv.NATS(t)
	r := &renewer{t: t, b: open(t, connect(t, url), 1)}
	proxy := testenv.NewTCPProxy(t, server.Addr().String())
	e := listen(t, open(t, connect(t, "nats://"+proxy.Addr()), 1))
	e.hears("began")
	require.Empty(t, e.hears(r.renews()))
	proxy.Cut()
	require.Empty(t, e.hears("lost"))
	missed := r.renews()
	proxy.Resume()
	e.hears("began")
	require.Empty(t, e.hears(missed))
}

// TestNodesThatStop has the bucket's leader stop, and then every node, with which the bucket is lost: its stream is there
// again, and empty.
func TestNodesThatStop(t *testing.T) {
	t.Parallel()
	nodes := testenv.NATSCluster(t, 3)
	js := connect(t, nodes.URL())
	b := open(t, js, 3)
	r := &renewer{t: t, b: b}
	e := listen(t, b)
	e.hears("began")
	require.Empty(t, e.hears(r.renews()))

	stream, err := js.Stream(t.Context(), "KV_alive")
	require.NoError(t, err)
	leader := stream.CachedInfo().Cluster.Leader
	nodes.StopNode(leader)
	e.hears(r.renews())
	nodes.StartNode(leader)
	e.hears(r.renews())

	for _, name := range []string{"n1", "n2", "n3"} {
		nodes.StopNode(name)
	}
	e.hears("lost")
	nodes.StartNode("n1", "n2", "n3")
	e.hears("began")
	e.hears(r.renews())
}

// TestABucketMadeByAWriterIsNoticedAtOnce has the writer be of the process that listens.
func TestABucketMadeByAWriterIsNoticedAtOnce(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	b := open(t, js, 1)
	r := &renewer{t: t, b: b}
	e := listen(t, b)
	e.hears("began")
	began := time.Now()
	require.NoError(t, js.DeleteStream(t.Context(), "KV_alive"))
	renewed := r.renews()
	require.Equal(t, []string{"lost"}, e.hears("began"))
	require.Less(t, time.Since(began), time.Second)
	require.Empty(t, e.hears(renewed))
}
