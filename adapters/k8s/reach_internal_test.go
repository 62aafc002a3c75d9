package k8s

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOneAsksForAll has a thousand wait for an API server that is away for ten minutes.
func TestOneAsksForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reach
		var asked atomic.Int64
		back := time.Now().Add(10 * time.Minute)
		ask := func(context.Context) bool { asked.Add(1); return !time.Now().Before(back) }
		answered := make(chan bool, 1000)
		for range cap(answered) {
			go func() {
				ok, waited := r.answers(t.Context(), ask)
				answered <- ok && waited
			}()
		}
		for range cap(answered) {
			require.True(t, <-answered)
		}
		require.LessOrEqual(t, time.Since(back), lookEvery)
		require.LessOrEqual(t, asked.Load(), int64(10*time.Minute/(lookEvery/2))+1000)
	})
}

// TestAnotherAsksWhenTheOneWhoDidEnds has whoever asks give up.
func TestAnotherAsksWhenTheOneWhoDidEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reach
		back := time.Now().Add(time.Minute)
		ask := func(context.Context) bool { return !time.Now().Before(back) }
		first, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan bool, 1)
		go func() {
			answered, _ := r.answers(first, ask)
			done <- answered
		}()
		synctest.Wait()
		answered, waited := r.answers(t.Context(), ask)
		require.True(t, answered)
		require.True(t, waited)
		require.False(t, <-done)
		answered, waited = r.answers(t.Context(), ask)
		require.True(t, answered)
		require.False(t, waited, "it answered at the first time")
	})
}
