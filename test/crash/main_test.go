// Package crash_test holds the journald that is shipped, as a process, to what the journal promises: what was
// acknowledged is there for good, the view is that of a replay, and no target goes back. The process is killed, frozen,
// terminated and cut off while services publish through HTTP and a real API server shows who leads.
//
// JOURNALD_KILLS says how often it is killed in a row (200), JOURNALD_SEED repeats the choices of an earlier run, which
// every test logs, and JOURNALD_RACE=1 builds it with the race detector.
package crash_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/internal/testenv/journald"
)

var (
	kube testenv.SharedKubernetes
	bin  journald.Program
)

func TestMain(m *testing.M) { os.Exit(bin.Run(withKubernetes{m})) }

type withKubernetes struct{ *testing.M }

func (w withKubernetes) Run() int { return kube.Run(w.M) }

// number is what an environment variable says, or else usual.
func number(t *testing.T, variable string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, variable)
	return n
}

// seeded is the seed of a test's choices.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed := number(t, "JOURNALD_SEED", rand.Uint64())
	t.Logf("JOURNALD_SEED=%d repeats this run's choices", seed)
	return seed
}

const (
	poll    = 5 * time.Millisecond
	patient = 30 * time.Second // for whatever takes a second when the machine has nothing else to do
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
