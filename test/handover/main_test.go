// Package handover_test measures how long it takes until Kubernetes shows the next leader: with journald's managed election,
// and beside it in the same run with client-go's leader election, at equal lease settings.
package handover_test

import (
	"os"
	"testing"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/internal/testenv/journald"
)

var (
	bin  journald.Program
	kube testenv.SharedKubernetes
)

// program has the API server run while the program's tests do.
type program struct{ tests interface{ Run() int } }

func (p program) Run() int { return bin.Run(p.tests) }

func TestMain(m *testing.M) { os.Exit(kube.Run(program{m})) }
