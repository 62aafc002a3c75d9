// Package program runs other programs that must not get out of hand: without a shell, each in a process group of its own,
// which is killed as a whole when its time is over, and with no more kept of what they print than the end.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Program is one run of a program.
type Program struct {
	Command []string // the program, looked for in PATH where it has no slash, and its arguments
	Dir     string   // to run in; empty: this process's
	Env     []string // NAME=value, after this process's own environment
	Input   []byte   // that it can read; it need not
}

const (
	outputKept = 512                    // bytes of the end of what a program prints
	outputWait = 250 * time.Millisecond // for what a program has started and left behind with its output
)

// Find says why a command can't be run; nil: it is there.
func Find(command []string) error {
	if len(command) == 0 || command[0] == "" {
		return errors.New("there is no command to run")
	}
	_, err := exec.LookPath(command[0])
	return err
}

// Run runs a program until it ends or ctx does, which kills it. The error says how it ended, where that is not with 0, and
// has the end of what it printed. What it started is killed with it, as far as that is in its process group still; what has
// left that and holds the output is not waited for longer than a quarter of a second, and an error.
func (p Program) Run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)
	output := &tail{most: outputKept}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.Dir, output, output, outputWait
	if p.Input != nil {
		cmd.Stdin = bytes.NewReader(p.Input)
	}
	if len(p.Env) > 0 {
		cmd.Env = append(cmd.Environ(), p.Env...)
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
		return fmt.Errorf("%s: %w: %s", p.Command[0], err, output)
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
