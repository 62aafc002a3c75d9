package health_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/health"
	"github.com/leadership-journal/journald/internal/testenv/loopdisk"
)

func probe(t *testing.T, d health.Disk) health.Probe {
	t.Helper()
	p, err := d.Probe()
	require.NoError(t, err)
	return p
}

// left are the files that probes left in a directory.
func left(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, ".journald-probe-*"))
	require.NoError(t, err)
	return files
}

func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, probe(t, health.Disk{Paths: []string{dir}})(t.Context()))
	require.Empty(t, left(t, dir))
	err := probe(t, health.Disk{Paths: []string{filepath.Join(dir, "none"), dir, file}})(t.Context())
	require.EqualError(t, err, filepath.Join(dir, "none")+" does not exist\n"+file+" is not a directory")
}

func TestWhatADiskCanRunOutOf(t *testing.T) {
	disk := loopdisk.New(t, 8, 64)
	dir := disk.Path()
	full := health.Disk{Paths: []string{dir}, FreePercent: 5, FreeInodesPercent: 5}
	look, onlyWrite := probe(t, full), probe(t, health.Disk{Paths: []string{dir}})
	full.SkipWrite = true
	onlyAsk := probe(t, full)
	good := func() {
		t.Helper()
		for _, p := range []health.Probe{look, onlyWrite, onlyAsk} {
			require.NoError(t, p(t.Context()))
		}
		require.Empty(t, left(t, dir))
	}
	good()

	disk.Fill()
	err := look(t.Context())
	require.ErrorContains(t, err, "of its space free, less than 5 %")
	require.ErrorContains(t, err, "write probe: ")
	require.ErrorIs(t, onlyWrite(t.Context()), syscall.ENOSPC)
	require.ErrorContains(t, onlyAsk(t.Context()), dir+" has 0.0 % of its space free")
	require.Empty(t, left(t, dir))
	disk.Empty()
	good()

	disk.TakeInodes()
	require.ErrorIs(t, onlyWrite(t.Context()), syscall.ENOSPC)
	require.EqualError(t, onlyAsk(t.Context()), dir+" has 0.0 % of its inodes free, less than 5 %")
	disk.Empty()
	good()

	disk.ReadOnly()
	require.ErrorIs(t, look(t.Context()), syscall.EROFS)
	require.NoError(t, onlyAsk(t.Context()))
	disk.Writable()
	good()
}

// A frozen disk says how much is free, so that only the write finds out. The run hangs, is given up, and tidies up when the
// disk goes on.
func TestAFrozenDisk(t *testing.T) {
	disk := loopdisk.New(t, 8, 64)
	dir := disk.Path()
	ask := probe(t, health.Disk{Paths: []string{dir}, FreePercent: 5, FreeInodesPercent: 5, SkipWrite: true})
	runner, err := health.New(health.Check{
		Name: "disk", Period: 50 * time.Millisecond, Deadline: 30 * time.Millisecond,
		Probe: probe(t, health.Disk{Paths: []string{dir}, FreePercent: 5}),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended, results := make(chan struct{}), make(chan health.Result)
	go func() {
		defer close(ended)
		runner.Run(ctx, func(ctx context.Context, r health.Result) {
			select {
			case results <- r:
			case <-ctx.Done():
			}
		})
	}()
	await := func(pass bool, reason string) {
		t.Helper()
		for r := range results {
			if r.Pass == pass && strings.Contains(r.Reason, reason) {
				return
			}
		}
	}
	await(true, "")
	disk.Freeze(20 * time.Second)
	await(false, "timed out after 30ms")
	await(false, "still hangs since ")
	require.NoError(t, ask(t.Context()), "statfs answers")
	began := time.Now()
	cancel()
	<-ended
	require.Less(t, time.Since(began), time.Second, "nobody waits for a run that was given up")
	disk.Thaw()
	require.Eventually(t, func() bool { return len(left(t, dir)) == 0 }, 10*time.Second, time.Millisecond)
}

// What a probe could not delete, since its process was killed or the disk became read-only, a later one does.
func TestLeftoversAreDeleted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".journald-probe-A", ".journald-probe-B"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	kept := filepath.Join(dir, "journald-probe-C")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	require.NoError(t, probe(t, health.Disk{Paths: []string{dir}})(t.Context()))
	require.Empty(t, left(t, dir))
	require.FileExists(t, kept)
}

func TestNothingIsWrittenWhenItIsTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, probe(t, health.Disk{Paths: []string{t.TempDir()}})(ctx), context.Canceled)
}

// Several probes in one directory may delete each other's files, and none minds.
func TestProbesShareADirectory(t *testing.T) {
	dir := t.TempDir()
	results := make(chan error)
	const n = 8
	for range n {
		go func() {
			for range 20 {
				p, err := health.Disk{Paths: []string{dir}}.Probe()
				if err == nil {
					err = p(t.Context())
				}
				results <- err
			}
		}()
	}
	for range n * 20 {
		require.NoError(t, <-results)
	}
	require.Empty(t, left(t, dir))
}

func TestBadDisksAreRefused(t *testing.T) {
	_, err := health.Disk{FreePercent: 100, FreeInodesPercent: -1}.Probe()
	require.EqualError(t, err, "there are no paths to look at\n"+
		"free space of at least 100 percent is not between 0 and less than 100\n"+
		"free inodes of at least -1 percent is not between 0 and less than 100")
	_, err = health.Disk{Paths: []string{""}}.Probe()
	require.EqualError(t, err, "a path is empty")
}
