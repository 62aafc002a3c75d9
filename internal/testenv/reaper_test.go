package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// sleeper starts a program that a reaper knows, and returns it when its process id is on file.
func sleeper(t *testing.T, r *reaper) *exec.Cmd {
	t.Helper()
	launcher := filepath.Join(t.TempDir(), "launch")
	require.NoError(t, os.WriteFile(launcher, []byte(launchScript), 0o755))
	program, err := exec.LookPath("cat")
	require.NoError(t, err)
	path, err := r.link(launcher, program)
	require.NoError(t, err)
	cmd := exec.Command(path)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = stdin.Write([]byte("x"))
	require.NoError(t, err)
	_, err = stdout.Read(make([]byte, 1)) // it runs, so the launcher is done
	require.NoError(t, err)
	return cmd
}

func TestReaperKillsWhatTheOwnerLeft(t *testing.T) {
	r, err := startReaper()
	require.NoError(t, err)
	cmd := sleeper(t, r)
	require.Equal(t, []int{cmd.Process.Pid}, pids(t, r.dir))

	require.NoError(t, r.owner.Close(), "the system does this when the owner ends")
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
	require.NoError(t, r.cmd.Wait())
	require.NoDirExists(t, r.dir)
}

func TestReaperSparesWhatItWasToldToForget(t *testing.T) {
	r, err := startReaper()
	require.NoError(t, err)
	cmd := sleeper(t, r)
	require.NoError(t, r.forget())
	require.NoError(t, r.reap())
	require.NoDirExists(t, r.dir)

	require.NoError(t, cmd.Process.Signal(syscall.Signal(0)), "it runs on")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
}

func TestStoppedKubernetesLeavesNothing(t *testing.T) {
	k, err := StartKubernetes(t.Context())
	require.NoError(t, err)
	running := pids(t, k.reaper.dir)
	require.Len(t, running, 2)
	for _, pid := range running {
		require.NoError(t, syscall.Kill(pid, 0))
	}

	require.NoError(t, k.Stop())
	for _, pid := range running {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	require.NoDirExists(t, k.reaper.dir)
}

// pids returns the process ids that the launcher left in dir.
func pids(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	require.NoError(t, err)
	var pids []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}
