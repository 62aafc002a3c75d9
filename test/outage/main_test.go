// Package outage_test holds the journald that is shipped to what it promises while backends are away: the API server,
// a ZooKeeper ensemble without a quorum, and both at once, for two minutes, under a load of a hundred events each second.
// Nothing is lost, memory stays bounded, what is up keeps up, and what comes back shows the newest within seconds, with
// about one write for each object.
//
// Three journalds go through it at the same time, each with a group of its own that is shown in both kinds of backend: one
// loses its API server, one its ensemble, one both. After the outage, alerts take another minute to clear.
//
// JOURNALD_OUTAGE shortens the outage (2m), to try something out. Below a minute no alert is due. JOURNALD_RACE=1 builds
// journald with the race detector.
package outage_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/internal/testenv/journald"
)

var (
	kube    testenv.SharedKubernetes
	program journald.Program
)

func TestMain(m *testing.M) { os.Exit(program.Run(withKubernetes{m})) }

type withKubernetes struct{ *testing.M }

func (w withKubernetes) Run() int { return kube.Run(w.M) }

// duration is what an environment variable says, or else usual.
func duration(t *testing.T, variable string, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, variable)
	require.Positive(t, d, variable)
	return d
}

const (
	poll    = 200 * time.Millisecond // seldom enough not to be a load of its own
	patient = time.Minute            // for whatever takes some seconds when the machine has nothing else to do
)

// await returns when the condition holds, and fails the test where it doesn't in time.
func await(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			require.FailNow(t, what+": not within "+within.String())
		}
	}
}
