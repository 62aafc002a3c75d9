package journald

import (
	"os/exec"
	"syscall"
)

// leash has a process die with the tests, however they end.
func leash(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
