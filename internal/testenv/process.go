package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// registerScript leaves its process id in the file it is named after, then becomes the program, so that there
// is no moment when the program runs and the reaper does not know it.
const registerScript = `echo $$ > "$0" && exec "$@"`

// process is a program that dies with this one.
type process struct {
	cmd     *exec.Cmd
	pidFile string
	exited  chan struct{}
	err     error // how it ended; of whoever has seen exited closed
}

// start runs program under a name that no other running process of this reaper has. What it prints goes to
// output.
func (r *reaper) start(name string, output io.Writer, program string, args ...string) (*process, error) {
	pidFile := filepath.Join(r.dir, name+".pid")
	cmd := exec.Command("/bin/sh", append([]string{"-c", registerScript, pidFile, program}, args...)...)
	cmd.Dir = r.dir
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{cmd: cmd, pidFile: pidFile, exited: make(chan struct{})}
	go p.wait()
	return p, nil
}

// wait ends with the process; kill and stop wait for it. The process id may be another's from then on.
func (p *process) wait() {
	err := p.cmd.Wait()
	if gone := os.Remove(p.pidFile); !errors.Is(gone, os.ErrNotExist) { // killed before it wrote the file
		err = errors.Join(err, gone)
	}
	p.err = err
	close(p.exited)
}

// running tells whether the process has not ended by itself.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// signal is for a process that runs: one that has ended is an error.
func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending %s to process %d: %w", s, p.cmd.Process.Pid, err)
	}
	return nil
}

// kill returns when the process is gone, however it went.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-p.exited
	}
	return err
}

// stop asks the process to end, and returns when it is gone. One that has not ended in time is killed, which
// is an error.
func (p *process) stop(limit time.Duration) error {
	if !p.running() {
		return nil
	}
	if err := p.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, p.kill())
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("process %d did not end within %s", p.cmd.Process.Pid, limit), p.kill())
	}
}
