package suspend

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitStop returns when all threads of a child have stopped, which is when the kernel tells its parent.
func awaitStop(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
