package managed_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leadership-journal/journald/candidate"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/internal/testenv/suspend"
)

const (
	candidateVariable = "JOURNALD_TEST_CANDIDATE"
	group             = "demo"
	useEvery          = 20 * time.Millisecond
)

var components = []string{"db", "web"}

// settings are what a candidate's process is told.
type settings struct{ Server, Name string }

// use is a moment in which a process was sure that it leads: between two readings of a clock that all processes share.
type use struct {
	Component     string
	Epoch         uint64
	Before, After int64
}

// beCandidate is the whole program of a candidate.
func beCandidate(text string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := takePart(ctx, text, logger); err != nil {
		logger.Error("the candidate ended", "error", err)
		return 1
	}
	return 0
}

func takePart(ctx context.Context, text string, logger *slog.Logger) (err error) {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	c, err := client.Open(ctx, client.Options{Server: s.Server, Group: group, Instance: s.Name, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	return candidate.Run(ctx, candidate.Config{
		Client: c, Name: s.Name, Components: components, Address: "http://" + s.Name, Logger: logger,
	}, candidate.Callbacks{OnGranted: func(ctx context.Context, t *candidate.Term) error {
		epoch, err := t.Epoch(ctx)
		if err != nil {
			return err
		}
		tick := time.NewTicker(useEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			u := use{Component: t.Component, Epoch: epoch, Before: now()}
			if t.Held() {
				u.After = now()
				mu.Lock()
				err := out.Encode(u)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			<-tick.C
		}
		return nil
	}})
}

// now is on the clock of the machine.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// process is a candidate that runs.
type process struct {
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	output *strings.Builder
}

// launch starts a candidate, which is gone at the end of the test. What it says of its uses goes to the history.
func launch(t *testing.T, h *history, server, name string) *process {
	t.Helper()
	text, err := json.Marshal(settings{server, name})
	require.NoError(t, err)
	p := &process{name: name, ended: make(chan struct{}), output: &strings.Builder{}}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	p.cmd.Env = append(os.Environ(), candidateVariable+"="+string(text))
	p.cmd.Stderr = p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var u use
			if json.Unmarshal(lines.Bytes(), &u) == nil { // the last line of a process that was killed may be torn
				h.add(p, u)
			}
		}
		_ = p.cmd.Wait() // it was killed
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.output)
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (p *process) freeze(t *testing.T) {
	t.Helper()
	require.NoError(t, suspend.Suspend(p.cmd.Process))
}

func (p *process) thaw(t *testing.T) {
	t.Helper()
	require.NoError(t, suspend.Resume(p.cmd.Process))
}

// terminate ends a candidate in good order.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
	case <-time.After(patience):
		require.FailNow(t, "the candidate did not end", p.name)
	}
	require.Zero(t, p.cmd.ProcessState.ExitCode(), p.output)
}

func (u use) String() string { return fmt.Sprintf("%s by epoch %d", u.Component, u.Epoch) }
