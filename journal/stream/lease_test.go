package stream

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
)

const testTTL = 2 * time.Second

func release(t *testing.T, lease *Lease) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
	defer cancel()
	require.NoError(t, lease.Release(ctx))
}

func TestLeaseIsHeldAndHandedOver(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		ctx := bounded(t, time.Minute)
		first, second := l.NewLease(testTTL), l.NewLease(testTTL)
		held, err := first.Acquire(ctx)
		require.NoError(t, err)

		// nobody else gets it while it is renewed, for longer than it would last by itself
		waiting, cancel := context.WithTimeout(ctx, 2*testTTL)
		defer cancel()
		_, err = second.Acquire(waiting)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, held.Err())

		released := time.Now()
		release(t, first)
		require.ErrorIs(t, context.Cause(held), errReleased)
		_, err = second.Acquire(ctx)
		require.NoError(t, err)
		require.Less(t, time.Since(released), testTTL/2)
		release(t, second)
		release(t, second) // again: nothing
	})
}

// An instance that can't reach the server any more is succeeded in under 3 s, and knows before that it is not the holder.
func TestLeaseOfOneThatIsCutOff(t *testing.T) {
	for name, urls := range map[string]func(t *testing.T) (first string, all string, replicas int){
		"one node": func(t *testing.T) (string, string, int) {
			server, url := testenv.NATS(t)
			return server.Addr().String(), url, 1
		},
		"three nodes": func(t *testing.T) (string, string, int) {
			nodes := testenv.NATSCluster(t, 3)
			return nodes.Node("n1").Addr().String(), nodes.URL(), 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, url, replicas := urls(t)
			proxy := testenv.NewTCPProxy(t, address)
			nc, err := nats.Connect("nats://"+proxy.Addr(), nats.NoReconnect()) // it must not find its way past the proxy
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			other := open(t, Options{URL: url, MaxBytes: 64 << 20, Replicas: replicas, Instance: "other"})
			ctx := bounded(t, time.Minute)
			lease, successor := &Lease{js: js, holder: "cut", ttl: testTTL, replicas: replicas}, other.NewLease(testTTL)
			held, err := lease.Acquire(ctx)
			require.NoError(t, err)
			proxy.Cut()
			start := time.Now()
			_, err = successor.Acquire(ctx)
			require.NoError(t, err)
			require.Less(t, time.Since(start), 3*time.Second)
			require.ErrorIs(t, context.Cause(held), ErrLeaseLost)
			release(t, successor)
		})
	}
}

// A renewal that was made and whose answer was lost is found again: the lease stays.
func TestLeaseOutlivesALostAnswer(t *testing.T) {
	server, url := testenv.NATS(t)
	proxy := newLossyProxy(t, server.Addr().String(), "$KV.", "KV_"+LeaseBucket)
	l := open(t, Options{URL: "nats://" + proxy.address(), MaxBytes: 64 << 20})
	ctx := bounded(t, time.Minute)
	lease := l.NewLease(testTTL)
	held, err := lease.Acquire(ctx)
	require.NoError(t, err)
	proxy.arm("answer lost")

	other := open(t, Options{URL: url, MaxBytes: 64 << 20})
	bucket, err := other.js.KeyValue(ctx, LeaseBucket)
	require.NoError(t, err)
	for {
		entry, err := bucket.Get(ctx, leaseKey)
		require.NoError(t, err)
		require.Contains(t, string(entry.Value()), "journald ")
		if entry.Revision() >= 8 {
			break
		}
	}
	require.True(t, proxy.fired())
	require.NoError(t, held.Err())
	release(t, lease)
}

// The lease is in memory: after a restart of the server it is free, and the holder knows that it lost it.
func TestLeaseEndsWithItsServer(t *testing.T) {
	opts := embedded(t.TempDir())
	opts.Embedded.Listen = freePorts(t, 1)[0]
	server := open(t, opts)
	l := open(t, Options{URL: server.ClientURL(), MaxBytes: 64 << 20})
	ctx := bounded(t, time.Minute)
	lease := l.NewLease(testTTL)
	held, err := lease.Acquire(ctx)
	require.NoError(t, err)
	closeLog(t, server)
	<-held.Done()
	require.ErrorIs(t, context.Cause(held), ErrLeaseLost)
	open(t, opts)
	release(t, lease)
	held, err = lease.Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, held.Err())
	release(t, lease)
}

func TestLeaseMisuse(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	ctx, cancel := context.WithCancel(bounded(t, 10*time.Second))
	_, err := l.NewLease(time.Millisecond).Acquire(ctx)
	require.ErrorContains(t, err, "too short")
	lease := l.NewLease(testTTL)
	held, err := lease.Acquire(ctx)
	require.NoError(t, err)
	_, err = lease.Acquire(ctx)
	require.ErrorContains(t, err, "not released")
	cancel()
	<-held.Done()
	require.ErrorIs(t, context.Cause(held), context.Canceled)
	release(t, lease)
	_, err = lease.Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
