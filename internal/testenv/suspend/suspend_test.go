package suspend_test

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv/suspend"
)

func TestASuspendedProcessDoesNothingAnyMore(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	require.NoError(t, cmd.Start())
	for range 200 {
		require.NoError(t, suspend.Suspend(cmd.Process))
		require.Equal(t, "T", state(t, cmd.Process.Pid))
		require.NoError(t, suspend.Resume(cmd.Process))
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.ErrorIs(t, suspend.Suspend(cmd.Process), os.ErrProcessDone)
}

// state is the letter that Linux has for what a process does; elsewhere nothing is known, and nothing is promised.
func state(t *testing.T, pid int) string {
	if runtime.GOOS != "linux" {
		return "T"
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(stat), ") ")
	require.True(t, ok)
	return rest[:1]
}
