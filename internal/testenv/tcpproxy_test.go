package testenv_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/testenv"
)

// echo serves connections that answer with what they are sent, until the end of the test.
func echo(t *testing.T) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		conns.Wait()
	})
	return listener.Addr().String()
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return conn.(*net.TCPConn)
}

// roundTrip sends a message and returns how long its echo took.
func roundTrip(t *testing.T, conn net.Conn, message string) time.Duration {
	t.Helper()
	start := time.Now()
	_, err := conn.Write([]byte(message))
	require.NoError(t, err)
	got := make([]byte, len(message))
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, message, string(got))
	return time.Since(start)
}

func TestTCPProxyForwardsAllBytesAndHalfClose(t *testing.T) {
	conn := dial(t, testenv.NewTCPProxy(t, echo(t)).Addr())
	sent := make([]byte, 20<<20)
	_, _ = rand.Read(sent)
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(func() {
		_, _ = conn.Write(sent)
		_ = conn.CloseWrite()
	})
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.True(t, bytes.Equal(sent, got), "%d bytes came back of %d", len(got), len(sent))
}

func TestTCPProxyCut(t *testing.T) {
	proxy := testenv.NewTCPProxy(t, echo(t))
	before := dial(t, proxy.Addr())
	roundTrip(t, before, "before")

	proxy.Cut()
	proxy.Cut()
	_, err := before.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	requireRefused(t, proxy.Addr())

	proxy.Resume()
	proxy.Resume()
	roundTrip(t, dial(t, proxy.Addr()), "after")
}

func TestTCPProxyResetsWhereTheUpstreamIsGone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	requireRefused(t, testenv.NewTCPProxy(t, listener.Addr().String()).Addr())
}

// requireRefused expects a reset, which comes while the connection is being made or right after.
func requireRefused(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Minute)
	if err == nil {
		defer func() { _ = conn.Close() }()
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = conn.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestTCPProxyDelaysEachDirection(t *testing.T) {
	const delay = 100 * time.Millisecond
	for name, test := range map[string]struct{ up, down, want time.Duration }{
		"up":   {delay, 0, delay},
		"down": {0, delay, delay},
		"both": {delay, delay, 2 * delay},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := testenv.NewTCPProxy(t, echo(t))
			conn := dial(t, proxy.Addr())
			proxy.Delay(test.up, test.down)
			require.GreaterOrEqual(t, roundTrip(t, conn, "late"), test.want)
			proxy.Delay(0, 0)
			roundTrip(t, conn, "in time")
		})
	}
}

func TestTCPProxyDelayIsNotALimitOfThroughput(t *testing.T) {
	const delay, messages = 200 * time.Millisecond, 50
	proxy := testenv.NewTCPProxy(t, echo(t))
	proxy.Delay(delay, 0)
	conn := dial(t, proxy.Addr())
	start := time.Now()
	for range messages {
		_, err := conn.Write(make([]byte, 64<<10))
		require.NoError(t, err)
	}
	_, err := io.ReadFull(conn, make([]byte, messages*64<<10))
	require.NoError(t, err)
	require.Less(t, time.Since(start), messages*delay/2, "chunks wait one after the other")
}

func TestTCPProxyFreeze(t *testing.T) {
	proxy := testenv.NewTCPProxy(t, echo(t))
	conn := dial(t, proxy.Addr())
	roundTrip(t, conn, "before")

	proxy.Freeze()
	proxy.Freeze()
	_, err := conn.Write([]byte("during"))
	require.NoError(t, err, "a frozen peer is not a closed one")
	requireMute(t, conn)
	late := dial(t, proxy.Addr())
	_, err = late.Write([]byte("late"))
	require.NoError(t, err)
	requireMute(t, late)

	proxy.Thaw()
	proxy.Thaw()
	requireReads(t, conn, "during")
	requireReads(t, late, "late")
	roundTrip(t, conn, "after")
}

// requireMute waits long enough for an echo on loopback, and for none.
func requireMute(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
}

func requireReads(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func TestTCPProxyCutsWhileFrozenAndDelayed(t *testing.T) {
	proxy := testenv.NewTCPProxy(t, echo(t))
	proxy.Delay(time.Hour, time.Hour)
	proxy.Freeze()
	conn := dial(t, proxy.Addr())
	_, err := conn.Write([]byte("never"))
	require.NoError(t, err)
	proxy.Cut()
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestTCPProxyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	proxy, err := testenv.StartTCPProxy(ctx, echo(t))
	require.NoError(t, err)
	conn := dial(t, proxy.Addr())
	roundTrip(t, conn, "before")

	cancel()
	proxy.Close()
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = net.Dial("tcp", proxy.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	proxy.Resume()
	proxy.Close()
}

func TestTCPProxyStandsBeforeTheAPIServer(t *testing.T) {
	config := kube.Config(t)
	server := clientset(t, config).RESTClient().Get().URL().Host
	proxy := testenv.NewTCPProxy(t, server)
	through := rest.CopyConfig(config)
	through.Host = "https://" + proxy.Addr()
	requireWatchStreams(t, through, config)

	proxy.Cut()
	require.Error(t, reach(t, through))
	proxy.Resume()
	require.NoError(t, reach(t, through))
}

// reach makes one request, without client-go's own repetitions.
func reach(t *testing.T, config *rest.Config) error {
	t.Helper()
	return clientset(t, config).RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(t.Context()).Error()
}
