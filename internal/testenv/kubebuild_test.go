package testenv

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeBuild counts how often it ran and leaves programs that say so.
type fakeBuild struct {
	runs atomic.Int32
	err  error
}

func (f *fakeBuild) build(_ context.Context, module, out string, _ io.Writer) error {
	f.runs.Add(1)
	for _, file := range []string{"go.mod", "go.sum"} {
		if _, err := os.Stat(filepath.Join(module, file)); err != nil {
			return err
		}
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(out, name), nil, 0o755); err != nil {
			return err
		}
	}
	return f.err
}

func (f *fakeBuild) cache(root string) kubeCache {
	return kubeCache{root: root, build: f.build, progress: io.Discard}
}

func TestCacheBuildsOnceForAllWhoAskAtOnce(t *testing.T) {
	root := t.TempDir()
	var fake fakeBuild
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			binaries, err := fake.cache(root).binaries(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			for _, path := range []string{binaries.APIServer, binaries.Etcd, binaries.launcher} {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asking.Wait()
	require.EqualValues(t, 1, fake.runs.Load())
}

func TestCacheBuildsAgainAfterAFailure(t *testing.T) {
	root := t.TempDir()
	fake := fakeBuild{err: errors.New("no disk space")}
	_, err := fake.cache(root).binaries(t.Context())
	require.ErrorIs(t, err, fake.err)
	require.Empty(t, directories(t, root), "a failed build is not kept")

	fake.err = nil
	_, err = fake.cache(root).binaries(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, fake.runs.Load())
	require.Equal(t, []string{cacheKey()}, directories(t, root))
}

func TestCacheRemovesABuildThatWasKilled(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "build-killed", "bin"), 0o755))
	var fake fakeBuild
	_, err := fake.cache(root).binaries(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{cacheKey()}, directories(t, root))
}

func TestCacheWaitsForTheLockAsLongAsItsContext(t *testing.T) {
	root := t.TempDir()
	unlock, err := lockFile(t.Context(), filepath.Join(root, "lock"))
	require.NoError(t, err)
	var fake fakeBuild
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = fake.cache(root).binaries(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, fake.runs.Load())

	unlock()
	_, err = fake.cache(root).binaries(t.Context())
	require.NoError(t, err)
}

func directories(t *testing.T, root string) []string {
	t.Helper()
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

func TestKubeBinariesAreBuiltOnce(t *testing.T) {
	first, err := KubeBinaries(t.Context(), t.Output())
	require.NoError(t, err)
	built, err := os.Stat(first.APIServer)
	require.NoError(t, err)

	t.Setenv("PATH", "") // no go command
	var progress bytes.Buffer
	second, err := KubeBinaries(t.Context(), &progress)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Empty(t, progress.String())
	found, err := os.Stat(second.APIServer)
	require.NoError(t, err)
	require.Equal(t, built.ModTime(), found.ModTime())
}

func TestKubeBinariesThatCannotBeBuiltNameTheCommand(t *testing.T) {
	t.Setenv("PATH", "") // no go command
	t.Setenv(cacheVariable, t.TempDir())
	_, err := KubeBinaries(t.Context(), io.Discard)
	require.ErrorContains(t, err, BuildCommand)
}

func TestVersionsAreThoseOfTheModule(t *testing.T) {
	required := strings.Fields(string(kubeMod))
	for path, version := range map[string]string{
		"k8s.io/kubernetes":         KubernetesVersion,
		"go.etcd.io/etcd/server/v3": EtcdVersion,
	} {
		require.Contains(t, strings.Join(required, " "), " "+path+" "+version+" ")
		require.Contains(t, cacheKey(), version)
	}
	require.Contains(t, string(kubeMod), "k8s.io/apiserver v"+strings.Replace(KubernetesVersion, "v1.", "0.", 1))
}
