package health

import "github.com/leadership-journal/journald/internal/program"

// Exec runs a program, without a shell: the check passes where it exits with 0. At the deadline it is killed, with
// everything that it started and that is in its process group still.
type Exec struct {
	Command []string // the program, looked for in PATH where it has no slash, and its arguments
	Dir     string   // to run in; empty: this process's
	Env     []string // NAME=value, after this process's own environment
}

// Probe is the check of this program. A program that can't be found is refused.
func (e Exec) Probe() (Probe, error) {
	if err := program.Find(e.Command); err != nil {
		return nil, err
	}
	return program.Program{Command: e.Command, Dir: e.Dir, Env: e.Env}.Run, nil
}
