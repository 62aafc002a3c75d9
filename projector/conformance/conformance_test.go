package conformance_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/projector/conformance"
)

// bugVariable has the reference break one promise.
const bugVariable = "CONFORMANCE_BUG"

func TestReference(t *testing.T) {
	all := func(l journal.LeaderInfo) journal.LeaderInfo { return l }
	bug := os.Getenv(bugVariable)
	s := conformance.Suite{Visible: all, New: func(testing.TB) conformance.Object { return newStore(bug) }}
	if bug != "" {
		s.Patience = time.Second // to no avail
	}
	s.Run(t)
}

func TestReferenceOfOneObjectForEachComponent(t *testing.T) {
	all := func(l journal.LeaderInfo) journal.LeaderInfo { return l }
	conformance.Suite{Visible: all, New: func(testing.TB) conformance.Object { return single{newStore("")} }}.Run(t)
}

type single struct{ *store }

func (s single) Target(testing.TB) projector.Target { return &target{store: s.store, each: true} }

// TestEveryBrokenPromiseIsFound runs the suite, in a process of its own, on targets that break one promise each.
func TestEveryBrokenPromiseIsFound(t *testing.T) {
	for _, bug := range []string{
		"ignores the fence", "withdraws without a fence", "writes always", "writes content only", "writes without a condition",
		"writes in two steps", "forgets the others", "takes everything down", "never reads again", "takes silence for failure",
		"believes what it wrote", "tells of no gap", "looks before the gap", "tells of everything", "looks at entries only", "is silent on what is missing",
		"does not come back", "watches on", "reads what it knows", "reads no fence", "reads in an order of its own",
		"reads on", "reads nothing for an error", "writes when it reads",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReference$", "-test.failfast")
			run.Env = append(os.Environ(), bugVariable+"="+bug)
			output, err := run.CombinedOutput()
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "the suite found nothing:\n%s", output)
			require.Contains(t, string(output), "--- FAIL: TestReference/", "%s", output)
		})
	}
}
