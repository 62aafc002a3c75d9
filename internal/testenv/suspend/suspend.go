// Package suspend stops processes in the middle of whatever they do, for tests that look at what such a process leaves
// behind, or that go on while it can't.
package suspend

import (
	"fmt"
	"os"
	"syscall"
)

// Suspend stops a child of this process. On Linux it returns when no thread of the child runs any more: until then a
// write that was under way could still be seen to happen.
func Suspend(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("suspend process %d: %w", p.Pid, err)
	}
	if err := awaitStop(p.Pid); err != nil {
		return fmt.Errorf("wait for process %d to be suspended: %w", p.Pid, err)
	}
	return nil
}

// Resume has a suspended process go on.
func Resume(p *os.Process) error {
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("resume process %d: %w", p.Pid, err)
	}
	return nil
}
