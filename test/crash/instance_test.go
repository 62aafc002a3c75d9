package crash_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// instance is one journald process, from its start to its end.
type instance struct {
	t         *testing.T
	cmd       *exec.Cmd
	listening chan struct{} // closed when url is known
	ended     chan struct{} // closed when code is known
	url       string
	nats      string // where NATS clients are taken, where --nats-listen was given
	code      int    // -1 where a signal ended it

	mu   sync.Mutex
	said []string
}

// launch starts a journald and returns at once. It is killed at the end of the test, if it is there still.
func launch(t *testing.T, args ...string) *instance {
	t.Helper()
	i := &instance{t: t, listening: make(chan struct{}), ended: make(chan struct{})}
	i.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), bin.path, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	i.cmd.Env = []string{"HOME=/nonexistent", "TZ=UTC"}
	leash(i.cmd)
	stderr, err := i.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, i.cmd.Start())
	go i.attend(stderr)
	t.Cleanup(func() {
		expected := i.over() && i.code < 0 // the test killed it
		i.kill()
		require.NotContains(t, i.text(), "DATA RACE")
		if t.Failed() && !expected {
			t.Logf("journald %s said:\n%s", strings.Join(args, " "), i.text())
		}
	})
	return i
}

// start launches a journald and returns when it listens.
func start(t *testing.T, args ...string) *instance {
	t.Helper()
	i := launch(t, args...)
	i.awaitListening()
	return i
}

// attend reads what the process says until it ends.
func (i *instance) attend(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	listens := ""
	for lines.Scan() {
		line := lines.Text()
		i.note(line)
		if rest, ok := strings.CutPrefix(line, "journald listens on "); ok {
			listens, _, _ = strings.Cut(rest, ",")
		}
		if rest, ok := strings.CutPrefix(line, "NATS clients: "); ok && i.url == "" {
			i.nats = rest
		}
		if listens != "" && i.url == "" && i.complete() {
			i.url = listens
			close(i.listening)
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // a line that is too long must not stop the process
	err := i.cmd.Wait()
	i.code = i.cmd.ProcessState.ExitCode()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		i.note("wait: " + err.Error())
	}
	close(i.ended)
}

// complete says that all that was asked for is known.
func (i *instance) complete() bool {
	for _, arg := range i.cmd.Args {
		if arg == "--nats-listen" {
			return i.nats != ""
		}
	}
	return true
}

const mostSaid = 400

func (i *instance) note(line string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.said = append(i.said, line)
	if len(i.said) > mostSaid {
		i.said = i.said[len(i.said)-mostSaid:]
	}
}

// text is the newest of what it said.
func (i *instance) text() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Join(i.said, "\n")
}

func (i *instance) awaitListening() {
	i.t.Helper()
	select {
	case <-i.listening:
	case <-i.ended:
		require.FailNow(i.t, "journald ended before it listened", "code %d\n%s", i.code, i.text())
	case <-time.After(patient):
		require.FailNow(i.t, "journald does not listen", i.text())
	}
}

// over says whether it has ended.
func (i *instance) over() bool {
	select {
	case <-i.ended:
		return true
	default:
		return false
	}
}

// kill ends the process as a power cut would, and returns when it is gone.
func (i *instance) kill() {
	_ = i.cmd.Process.Kill() // it may be gone
	<-i.ended
}

func (i *instance) signal(s syscall.Signal) {
	i.t.Helper()
	require.NoError(i.t, i.cmd.Process.Signal(s))
}

// freeze stops the process in the middle of whatever it does.
func (i *instance) freeze() {
	i.t.Helper()
	i.signal(syscall.SIGSTOP)
}

func (i *instance) thaw() {
	i.t.Helper()
	i.signal(syscall.SIGCONT)
}

// exit is the code with which it ends by itself.
func (i *instance) exit(within time.Duration) int {
	i.t.Helper()
	select {
	case <-i.ended:
	case <-time.After(within):
		require.FailNow(i.t, "journald does not end", "within %s\n%s", within, i.text())
	}
	return i.code
}

// terminate ends the process in good order, and says how long that took.
func (i *instance) terminate(within time.Duration) time.Duration {
	i.t.Helper()
	began := time.Now()
	i.signal(syscall.SIGTERM)
	require.Zero(i.t, i.exit(within), i.text())
	return time.Since(began)
}
