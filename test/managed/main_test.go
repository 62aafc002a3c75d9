// Package managed_test kills and freezes candidates of a managed group, real processes that use package candidate, and what
// elects them, and looks at who believed that it leads, and when.
package managed_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv/journald"
)

var bin journald.Program

// A test binary that is told so is a candidate.
func TestMain(m *testing.M) {
	if text := os.Getenv(candidateVariable); text != "" {
		os.Exit(beCandidate(text))
	}
	os.Exit(bin.Run(m))
}

const (
	faultsVariable = "JOURNALD_FAULTS" // how many faults there are in a row
	seedVariable   = "JOURNALD_SEED"   // repeats the choice of faults
	patience       = 90 * time.Second  // for what takes seconds when the machine has nothing else to do
)

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

func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := number(t, seedVariable, rand.Uint64())
	t.Logf("%s=%d repeats the choice of faults", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}
