package k8s

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOutageIsToldSeldom(t *testing.T) {
	o, at := outage{}, time.Unix(1000, 0)
	fails := func(after time.Duration, code int) bool { at = at.Add(after); return o.failed(at, code) }
	require.True(t, fails(0, 0), "the first")
	require.False(t, fails(time.Second, 0))
	require.True(t, fails(time.Second, http.StatusForbidden), "another answer")
	require.False(t, fails(outageTold-time.Second, http.StatusForbidden))
	require.True(t, fails(time.Second, http.StatusForbidden), "it lasts")
	require.Equal(t, time.Unix(1000, 0), o.since)
}

func TestOutageThatLastsIsAGapOnce(t *testing.T) {
	o, began := outage{}, time.Unix(1000, 0)
	o.failed(began, 0)
	require.False(t, o.deaf(began))
	require.False(t, o.over(), "a short one is not told")
	require.True(t, o.deaf(began.Add(outageIsDeaf)))
	require.False(t, o.deaf(began.Add(2*outageIsDeaf)))
	require.True(t, o.over())
	require.False(t, o.over())
}

// TestRetriesAreSoon: rights that were given back are noticed within seconds.
func TestRetriesAreSoon(t *testing.T) {
	wait := retries()
	for n := range 100 {
		require.Less(t, wait.NextBackOff(), 8*time.Second, n)
	}
	wait.Reset()
	require.Less(t, wait.NextBackOff(), time.Second)
}

func TestServersAreLeftAloneAsTheyAsk(t *testing.T) {
	require.Equal(t, 7*time.Second, asked(fmt.Errorf("list: %w", apierrors.NewTooManyRequests("busy", 7))))
	require.Equal(t, 7*time.Second, asked(apierrors.NewServerTimeout(schema.GroupResource{}, "list", 7)))
	require.Equal(t, watchObeys, asked(apierrors.NewTooManyRequests("busy", 86400)))
	require.Zero(t, asked(apierrors.NewForbidden(schema.GroupResource{}, "leaders", nil)))
	require.Zero(t, asked(http.ErrServerClosed))
}
