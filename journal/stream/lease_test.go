package stream

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
