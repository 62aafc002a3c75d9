package health

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Exec runs a program, without a shell: the check passes where it exits with 0. At the deadline it is killed, with
// everything that it started and that is in its process group still.
type Exec struct {
	Command []string // the program, looked for in PATH where it has no slash, and its arguments
	Dir     string   // to run in; empty: this process's
	Env     []string // NAME=value, after this process's own environment
}

const (
	outputKept = 512                    // bytes of the end of what a program prints, for the reason
	outputWait = 250 * time.Millisecond // for what a program has started and left behind with its output
)

// Probe is the check of this program. A program that can't be found is refused.
func (e Exec) Probe() (Probe, error) {
	if len(e.Command) == 0 || e.Command[0] == "" {
		return nil, errors.New("there is no command to run")
	}
	if _, err := exec.LookPath(e.Command[0]); err != nil {
		return nil, err
	}
	return e.run, nil
}

func (e Exec) run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, e.Command[0], e.Command[1:]...)
	output := &tail{most: outputKept}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = e.Dir, output, output, outputWait
	if len(e.Env) > 0 {
		cmd.Env = append(cmd.Environ(), e.Env...)
	}
	group(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = fmt.Errorf("it ended, and what it left behind holds its output: %w", err)
		if killed := cmd.Cancel(); killed != nil {
			err = fmt.Errorf("%w; killing that: %w", err, killed)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", e.Command[0], err, output)
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	most int
	text []byte
}

// Write never fails.
func (t *tail) Write(text []byte) (int, error) {
	t.text = append(t.text, text[max(len(text)-t.most, 0):]...)
	t.text = t.text[max(len(t.text)-t.most, 0):]
	return len(text), nil
}

// String is the end, or that there is nothing.
func (t *tail) String() string {
	if len(t.text) == 0 {
		return "it printed nothing"
	}
	return string(t.text)
}
