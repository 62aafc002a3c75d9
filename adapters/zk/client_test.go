package zk_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// requireEnds holds that something that may take seconds does not take for ever.
func requireEnds(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { do(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(t, what+" does not end")
	}
}

// TestCloseEnds whatever the servers do, with a push under way.
func TestCloseEnds(t *testing.T) {
	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, mute.Close()) }()
	gone, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for name, server := range map[string]string{
		"a server that serves": "", "a server that accepts and is mute": mute.Addr().String(), "no server": gone.Addr().String(),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *zk.Options) {
				if server != "" {
					o.Servers = []string{server}
				}
			})
			target := w.target(zk.JSON, "/leaders/{component}")
			watched := make(chan error, 1)
			go func() { watched <- target.Watch(t.Context(), func(projector.Observation) error { return nil }) }()
			pushed := make(chan struct{})
			go func() {
				defer close(pushed)
				_, _ = target.Push(t.Context(), document(7, "web", leader("http://a"))) // it may have come before
			}()
			requireEnds(t, "Close", w.client.Close)
			requireEnds(t, "the push", func() { <-pushed })
			_, err := target.Push(t.Context(), document(8, "web", leader("http://a")))
			require.ErrorContains(t, err, "the client is closed")
			requireEnds(t, "Close again", w.client.Close)
		})
	}
}

// TestCloseEndsInMidCall has a server fall mute with a transaction under way.
func TestCloseEndsInMidCall(t *testing.T) {
	var proxy *testenv.TCPProxy
	sent := make(chan struct{})
	w := newWorld(t, func(o *zk.Options) {
		proxy = testenv.NewTCPProxy(t, o.Servers[0])
		o.Servers, o.SessionTimeout = []string{proxy.Addr()}, time.Minute
		o.Wrap = func(ctx context.Context, write func(context.Context) error) error {
			proxy.Freeze()
			close(sent)
			return write(ctx)
		}
	})
	target := w.target(zk.JSON, "/leaders/{component}")
	ctx, cancel := context.WithCancel(t.Context())
	pushed := make(chan error, 1)
	go func() {
		_, err := target.Push(ctx, document(7, "web", leader("http://a")))
		pushed <- err
	}()
	<-sent
	cancel()
	requireEnds(t, "the push", func() { require.ErrorIs(t, <-pushed, projector.ErrUnknownOutcome) })
	requireEnds(t, "Close", w.client.Close)
}

// TestWithoutAServerNothingIsSent says so at once, however often it is asked.
func TestWithoutAServerNothingIsSent(t *testing.T) {
	gone, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	w := newWorld(t, func(o *zk.Options) { o.Servers = []string{gone.Addr().String()} })
	target := w.target(zk.JSON, "/leaders/{component}")
	for range 3 {
		_, err := target.Push(t.Context(), document(7, "web", leader("http://a")))
		require.ErrorContains(t, err, "ZooKeeper can't be reached: "+gone.Addr().String())
		for _, not := range []error{projector.ErrUnknownOutcome, projector.ErrPermanent, projector.ErrConflict} {
			require.NotErrorIs(t, err, not)
		}
		_, err = target.Read(t.Context(), []string{"web"})
		require.ErrorContains(t, err, "ZooKeeper can't be reached")
	}
}

// TestOptionsAreChecked before anything is connected to.
func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]zk.Options{
		"no ZooKeeper server is named":        {},
		"the digest is not user:password":     {Servers: []string{"a"}, Digest: "secret"},
		`server "a:99999": port "99999" is n`: {Servers: []string{"a:99999"}},
	} {
		_, err := zk.NewClient(t.Context(), o)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	w := newWorld(t)
	_, err := w.client.Connect("g", journal.Target{Name: "zk", Kind: "k8s/lease"})
	require.ErrorContains(t, err, "target zk: kind")
	_, err = w.client.Connect("g", journal.Target{Name: "zk", Kind: zk.Kind, Layout: zk.JSON, Path: "/{component}", Components: []string{"a/b"}})
	require.ErrorContains(t, err, "can't have a /")
}
