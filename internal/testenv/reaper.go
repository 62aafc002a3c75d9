package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// launchScript leaves its process id beside the link it was started by, then becomes the program. envtest
// keeps the ids to itself, and first runs each program with --help.
const launchScript = `#!/bin/sh
[ "$1" = --help ] || echo $$ > "$0.pid"
exec "$0.program" "$@"
`

// reapScript waits for the end of its input, which comes with the end of the owner, however it ended.
const reapScript = `trap "" HUP INT TERM
cat > /dev/null
for pid in $(cat "$1"/*.pid 2> /dev/null); do kill -KILL "$pid" 2> /dev/null; done
rm -rf "$1"`

// reaper is a small process that outlives its owner. It kills the programs that were linked into its
// directory and removes the directory, also when the owner is killed or panics.
type reaper struct {
	dir   string
	cmd   *exec.Cmd
	owner io.Closer
}

func startReaper() (*reaper, error) {
	dir, err := os.MkdirTemp("", "journald-testenv-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", reapScript, "reaper", dir)
	owner, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the reaper: %w", err), os.RemoveAll(dir))
	}
	return &reaper{dir: dir, cmd: cmd, owner: owner}, nil
}

// link returns a path that starts program so that the reaper knows it.
func (r *reaper) link(launcher, program string) (string, error) {
	path := filepath.Join(r.dir, filepath.Base(program))
	return path, errors.Join(os.Symlink(launcher, path), os.Symlink(program, path+".program"))
}

// forget says that the programs have stopped by themselves: their process ids may be another's by now.
func (r *reaper) forget() error {
	pids, err := filepath.Glob(filepath.Join(r.dir, "*.pid"))
	for _, pid := range pids {
		err = errors.Join(err, os.Remove(pid))
	}
	return err
}

// reap does at once what the end of the owner would do, and waits for it.
func (r *reaper) reap() error {
	return errors.Join(r.owner.Close(), r.cmd.Wait())
}
