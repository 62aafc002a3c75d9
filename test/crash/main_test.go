// Package crash_test holds the journald that is shipped, as a process, to what the journal promises: what was
// acknowledged is there for good, the view is that of a replay, and no target goes back. The process is killed, frozen,
// terminated and cut off while services publish through HTTP and a real API server shows who leads.
//
// JOURNALD_KILLS says how often it is killed in a row (200), JOURNALD_SEED repeats the choices of an earlier run, which
// every test logs, and JOURNALD_RACE=1 builds it with the race detector.
package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
)

var (
	kube testenv.SharedKubernetes
	bin  program
)

func TestMain(m *testing.M) { os.Exit(bin.run(m)) }

// program is the journald that all tests run.
type program struct{ path string }

const buildTimeout = 10 * time.Minute

// run builds the program, runs the tests, and returns the exit code.
func (p *program) run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "journald-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p.path = filepath.Join(dir, "journald")
	if err := p.build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return kube.Run(m)
}

func (p *program) build() error {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	args := []string{"build", "-o", p.path}
	if os.Getenv("JOURNALD_RACE") != "" {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/leadership-journal/journald/cmd/journald")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build journald: %w\n%s", err, out)
	}
	return nil
}

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
