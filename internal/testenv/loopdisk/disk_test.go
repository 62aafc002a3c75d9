package loopdisk_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv/loopdisk"
)

func write(dir string) error {
	path := filepath.Join(dir, "file")
	return errors.Join(os.WriteFile(path, make([]byte, 4096), 0o600), os.Remove(path))
}

func TestEveryWayToBreakADisk(t *testing.T) {
	d := loopdisk.New(t, 4, 32)
	require.NoError(t, write(d.Path()))

	d.Fill()
	require.ErrorIs(t, write(d.Path()), syscall.ENOSPC)
	d.Empty()
	require.NoError(t, write(d.Path()))

	d.TakeInodes()
	require.ErrorIs(t, write(d.Path()), syscall.ENOSPC)
	d.Empty()
	require.NoError(t, write(d.Path()))

	d.ReadOnly()
	require.ErrorIs(t, write(d.Path()), syscall.EROFS)
	d.Writable()
	require.NoError(t, write(d.Path()))
}

// A frozen disk answers whoever only looks; a write hangs until it is thawed.
func TestFreeze(t *testing.T) {
	d := loopdisk.New(t, 4, 32)
	d.Freeze(20 * time.Second)
	_, err := os.ReadDir(d.Path())
	require.NoError(t, err)
	require.NoError(t, syscall.Statfs(d.Path(), new(syscall.Statfs_t)))
	written := make(chan error)
	go func() { written <- write(d.Path()) }()
	select {
	case err := <-written:
		require.Fail(t, "a frozen disk took a write", err)
	case <-time.After(100 * time.Millisecond):
	}
	d.Thaw()
	require.NoError(t, <-written)
}

// A freeze ends by itself, since a test that hangs in it can't end it.
func TestFreezeEndsByItself(t *testing.T) {
	d := loopdisk.New(t, 4, 32)
	d.Freeze(time.Second)
	require.NoError(t, write(d.Path()))
}

const victim = "JOURNALD_LOOPDISK_VICTIM" // set in a test process that is there to be killed

// TestVictim has a disk hang a write of its own process, and waits to be killed.
func TestVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		return // there is nothing to do but for TestNothingIsLeft
	}
	d := loopdisk.New(t, 4, 32)
	d.Freeze(time.Second)
	go func() { _ = write(d.Path()) }()
	require.Eventually(t, hangs, 20*time.Second, time.Millisecond)
	_, err := os.Stdout.WriteString(d.Path() + "\n")
	require.NoError(t, err)
	<-t.Context().Done()
}

// hangs says whether a thread of this process is in the kernel where nothing can wake it.
func hangs() bool {
	stats, err := filepath.Glob("/proc/self/task/*/stat")
	for _, path := range stats {
		text, unread := os.ReadFile(path)
		if err == nil && unread == nil && strings.Contains(string(text), ") D ") {
			return true
		}
	}
	return false
}

// Tests that are killed while they hang in a frozen disk leave no mount and no file.
func TestNothingIsLeft(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victim+"=1")
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	path, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "it was killed")
	gone := func() bool {
		_, err := os.Stat(filepath.Dir(path))
		return errors.Is(err, os.ErrNotExist)
	}
	require.Eventually(t, gone, 30*time.Second, 10*time.Millisecond)
	mounts, err := os.ReadFile("/proc/mounts")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), filepath.Dir(path))
}
