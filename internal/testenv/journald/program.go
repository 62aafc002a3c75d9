package journald

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	source       = "github.com/leadership-journal/journald/cmd/journald"
	raceVariable = "JOURNALD_RACE" // set: the program is built with the race detector
	buildTimeout = 10 * time.Minute
)

// Program is a journald that was built of the sources as they are. Its zero value is ready; Run builds it.
type Program struct{ path string }

// Run builds the program, runs the tests, a *testing.M or what wraps one, and removes it. It returns the exit code for
// TestMain. With JOURNALD_RACE in the environment the program has the race detector, and a test fails whose journald
// found a race.
func (p *Program) Run(tests interface{ Run() int }) int {
	code, err := p.run(tests)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func (p *Program) run(tests interface{ Run() int }) (code int, err error) {
	dir, err := os.MkdirTemp("", "journald-program-")
	if err != nil {
		return 0, fmt.Errorf("building journald: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p.path = filepath.Join(dir, "journald")
	if err := p.build(); err != nil {
		return 0, err
	}
	return tests.Run(), nil
}

func (p *Program) build() error {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	args := []string{"build", "-o", p.path}
	if os.Getenv(raceVariable) != "" {
		args = append(args, "-race")
	}
	if out, err := exec.CommandContext(ctx, "go", append(args, source)...).CombinedOutput(); err != nil {
		return fmt.Errorf("building journald: %w\n%s", err, out)
	}
	return nil
}
