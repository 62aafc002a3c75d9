package interop_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	patience    = time.Minute // a machine that does other things beside
	longestLine = 1 << 20
)

// line is what a reader says.
type line struct {
	Ready   bool    `json:"ready"`   // it reads from now on
	Of      string  `json:"of"`      // a component
	Address *string `json:"address"` // nil: nobody leads
	Session string  `json:"session"`
	Error   string  `json:"error"`
	Reads   int     `json:"reads"` // at the end, where it counts them
}

// reader is a Java program that runs, and what it said so far.
type reader struct {
	t       *testing.T
	stdin   io.Closer
	ended   chan struct{} // when it said the last
	process *exec.Cmd

	mu    sync.Mutex
	lines []line
	said  chan struct{} // closed at the next line
}

// start runs a program until the test ends, and returns when it reads. It lives no longer than its standard input, thus
// no longer than the test's process.
func (p program) start(t *testing.T, args ...string) *reader {
	t.Helper()
	java := []string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", p.classpath, p.main,
	}
	// Not the test's context, which ends before its clean-up.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "java", append(java, args...)...)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoErrorf(t, cmd.Start(), "java is needed; install it with `%s`", install)
	r := &reader{t: t, process: cmd, stdin: stdin, ended: make(chan struct{}), said: make(chan struct{})}
	go r.listen(stdout)
	t.Cleanup(r.stop)
	r.await("it reads", func(said []line) bool { return slices.ContainsFunc(said, func(l line) bool { return l.Ready }) })
	return r
}

func (r *reader) listen(stdout io.Reader) {
	defer close(r.ended)
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, longestLine)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			l.Error = "not a line of JSON: " + scanner.Text()
		}
		r.hear(l)
	}
	if err := scanner.Err(); err != nil {
		r.hear(line{Error: "it can't be heard: " + err.Error()})
	}
}

func (r *reader) hear(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, l)
	close(r.said)
	r.said = make(chan struct{})
}

// soFar is what the reader said, and a channel that is closed when it says more.
func (r *reader) soFar() (said []line, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines), r.said
}

// await waits until what the reader said is enough. It fails where the reader ends before, or met an error.
func (r *reader) await(what string, enough func(said []line) bool) {
	r.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		said, more := r.soFar()
		r.wellSaid(said)
		if enough(said) {
			return
		}
		select {
		case <-more:
		case <-r.ended:
			said, _ = r.soFar()
			r.wellSaid(said)
			require.True(r.t, enough(said), "the reader ended before %s", what)
		case <-timeout.C:
			require.FailNow(r.t, "it took too long until "+what, "the last that was read: %s", show(said[max(0, len(said)-8):]))
		}
	}
}

func (r *reader) wellSaid(said []line) {
	r.t.Helper()
	for _, l := range said {
		require.Empty(r.t, l.Error, "the reader met an error, of %s", l.Of)
	}
}

// end has the program end, and returns all that it said.
func (r *reader) end() []line {
	r.t.Helper()
	require.NoError(r.t, r.stdin.Close())
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-r.ended:
	case <-timeout.C:
		require.FailNow(r.t, "the reader does not end")
	}
	require.NoError(r.t, r.process.Wait(), "the reader did not end well")
	said, _ := r.soFar()
	r.wellSaid(said)
	return said
}

// stop ends what is still running.
func (r *reader) stop() {
	_ = r.stdin.Close()
	_ = r.process.Process.Kill()
	<-r.ended
	_ = r.process.Wait()
}
