package journald

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leadership-journal/journald/internal/testenv/suspend"
)

const (
	startTimeout = 30 * time.Second // for what takes a second when the machine has nothing else to do
	mostSaid     = 400              // lines that are kept
	longestLine  = 1 << 20
)

// Process is one journald, from its start to its end. Its methods are safe for concurrent use.
type Process struct {
	tb        testing.TB
	cmd       *exec.Cmd
	listening chan struct{} // closed when url and nats are known
	ended     chan struct{} // closed when code is known
	url, nats string
	code      int

	mu   sync.Mutex
	said []string
}

// Launch starts `journald serve` with these arguments, and returns at once. Its environment is empty. Where it is there
// still at the end of the test it is killed.
func (p *Program) Launch(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return p.launch(tb, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
}

// Agent starts `journald agent` with these arguments, as Launch does. It never listens.
func (p *Program) Agent(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return p.launch(tb, append([]string{"agent"}, args...))
}

func (p *Program) launch(tb testing.TB, args []string) *Process {
	tb.Helper()
	r := &Process{tb: tb, listening: make(chan struct{}), ended: make(chan struct{})}
	r.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), p.path, args...)
	r.cmd.Env = []string{"HOME=/nonexistent", "TZ=UTC"}
	leash(r.cmd)
	stderr, err := r.cmd.StderrPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		tb.Fatalf("starting journald: %v", err)
	}
	go r.attend(stderr)
	tb.Cleanup(r.cleanUp)
	return r
}

// Start is Launch, and returns when journald listens.
func (p *Program) Start(tb testing.TB, args ...string) *Process {
	tb.Helper()
	r := p.Launch(tb, args...)
	r.AwaitListening()
	return r
}

func (p *Process) cleanUp() {
	killed := p.Over() && p.code < 0 // by the test
	p.Kill()
	said := p.Said()
	if strings.Contains(said, "DATA RACE") {
		p.tb.Errorf("journald found a race:\n%s", said)
	} else if p.tb.Failed() && !killed {
		p.tb.Logf("journald %s said:\n%s", strings.Join(p.cmd.Args[1:], " "), said)
	}
}

// attend reads what the process says until it ends.
func (p *Process) attend(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		p.hear(lines.Text())
	}
	_, _ = io.Copy(io.Discard, stderr) // a line that is too long must not stop the process
	err := p.cmd.Wait()
	p.code = p.cmd.ProcessState.ExitCode()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.hear("wait: " + err.Error())
	}
	close(p.ended)
}

// hear takes note of a line, and of the addresses that the first ones name.
func (p *Process) hear(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, line)
	p.said = p.said[max(len(p.said)-mostSaid, 0):]
	if p.heardAll() {
		return
	}
	if rest, ok := strings.CutPrefix(line, "journald listens on "); ok {
		p.url, _, _ = strings.Cut(rest, ",")
	}
	if rest, ok := strings.CutPrefix(line, "NATS clients: "); ok {
		p.nats = rest
	}
	if p.heardAll() {
		close(p.listening)
	}
}

// heardAll says whether every address is known that there is.
func (p *Process) heardAll() bool {
	return p.url != "" && (p.nats != "" || !slices.Contains(p.cmd.Args, "--nats-listen"))
}

// Listening is closed when journald listens. A process that ends before never does.
func (p *Process) Listening() <-chan struct{} { return p.listening }

// AwaitListening returns when journald listens.
func (p *Process) AwaitListening() {
	p.tb.Helper()
	select {
	case <-p.listening:
	case <-p.ended:
		p.tb.Fatalf("journald ended with code %d before it listened:\n%s", p.code, p.Said())
	case <-time.After(startTimeout):
		p.tb.Fatalf("journald does not listen:\n%s", p.Said())
	}
}

// URL is where the API is. It is to be asked for when journald listens.
func (p *Process) URL() string { return p.url }

// NATS is where NATS clients are taken, where there was an argument --nats-listen.
func (p *Process) NATS() string { return p.nats }

// Said is the newest of what journald said.
func (p *Process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.said, "\n")
}

// Ended is closed when the process has ended, however it did.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Over says whether it has.
func (p *Process) Over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Kill ends the process as a power cut would, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.ended
}

// Signal is for a process that runs.
func (p *Process) Signal(s os.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.tb.Fatalf("sending %s to journald: %v", s, err)
	}
}

// Freeze stops the process in the middle of whatever it does. When it returns the process does nothing any more.
func (p *Process) Freeze() {
	p.tb.Helper()
	if err := suspend.Suspend(p.cmd.Process); err != nil {
		p.tb.Fatalf("freezing journald: %v", err)
	}
}

// Thaw has a frozen process go on.
func (p *Process) Thaw() {
	p.tb.Helper()
	if err := suspend.Resume(p.cmd.Process); err != nil {
		p.tb.Fatalf("thawing journald: %v", err)
	}
}

// Exit is the code with which the process ends by itself, or -1 where a signal ended it.
func (p *Process) Exit(within time.Duration) int {
	p.tb.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		p.tb.Fatalf("journald has not ended within %s:\n%s", within, p.Said())
	}
	return p.code
}

// Terminate ends the process in good order, and says how long that took.
func (p *Process) Terminate(within time.Duration) time.Duration {
	p.tb.Helper()
	began := time.Now()
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(within); code != 0 {
		p.tb.Fatalf("journald ended with code %d:\n%s", code, p.Said())
	}
	return time.Since(began)
}

// Resident is the memory that the process has, in bytes; 0 where the system does not say, as only Linux does.
func (p *Process) Resident() uint64 {
	p.tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	var kib uint64
	if err == nil {
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		_, err = fmt.Sscan(rest, &kib)
	}
	if err != nil {
		p.tb.Fatalf("reading how much memory journald has: %v", err)
	}
	return kib << 10
}

// CPU is the processor time that the process has used; 0 where the system does not say, as only Linux does.
func (p *Process) CPU() time.Duration {
	p.tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	var user, system uint64
	if err == nil {
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on, as proc(5) counts them
		_, err = fmt.Sscan(strings.Join(fields[11:13], " "), &user, &system)
	}
	if err != nil {
		p.tb.Fatalf("reading how much processor time journald has used: %v", err)
	}
	return time.Duration(user+system) * (time.Second / clockTicks)
}

// clockTicks are those of a second in /proc, on every platform that Go runs on.
const clockTicks = 100
