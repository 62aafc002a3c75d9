package testenv

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // kube.mod and kube.sum
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The versions that KubeBinaries builds. They repeat what kube/kube.mod requires; a test holds them together.
const (
	KubernetesVersion = "v1.37.2"
	EtcdVersion       = "v3.7.3"
)

// BuildCommand builds and caches the binaries by hand; errors about them name it.
const BuildCommand = "go run ./internal/testenv/cmd/kubebuild"

// cacheVariable names the environment variable that moves the cache.
const cacheVariable = "JOURNALD_TESTENV"

const lockPoll = 200 * time.Millisecond

//go:embed kube/kube.mod
var kubeMod []byte

//go:embed kube/kube.sum
var kubeSum []byte

// Binaries are the paths of the programs of a control plane, side by side in one directory.
type Binaries struct {
	APIServer string
	Etcd      string

	launcher string // see reaper
}

// KubeBinaries returns kube-apiserver and etcd, built on first use with the go command from kube/kube.mod and
// kept in $JOURNALD_TESTENV, or else in journald-testenv of the user's cache directory, by version. Processes
// that ask at once build once. A build that was killed leaves nothing that a later call would take for whole.
// What the build prints goes to progress.
func KubeBinaries(ctx context.Context, progress io.Writer) (Binaries, error) {
	root, err := cacheRoot()
	if err != nil {
		return Binaries{}, fmt.Errorf("finding the cache of test binaries (set %s): %w", cacheVariable, err)
	}
	cache := kubeCache{root: root, build: goBuild, progress: progress}
	binaries, err := cache.binaries(ctx)
	if err != nil {
		return Binaries{}, fmt.Errorf("building kube-apiserver and etcd (try `%s`): %w", BuildCommand, err)
	}
	return binaries, nil
}

func cacheRoot() (string, error) {
	if dir := os.Getenv(cacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "journald-testenv"), nil
}

// kubeCache holds one directory for each key. A directory appears by one rename, so it is whole or absent.
type kubeCache struct {
	root     string
	build    func(ctx context.Context, module, out string, progress io.Writer) error
	progress io.Writer
}

func (c kubeCache) binaries(ctx context.Context) (Binaries, error) {
	dir := filepath.Join(c.root, cacheKey())
	found := Binaries{
		APIServer: filepath.Join(dir, "kube-apiserver"),
		Etcd:      filepath.Join(dir, "etcd"),
		launcher:  filepath.Join(dir, "launch"),
	}
	if present(dir) {
		return found, nil
	}
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return Binaries{}, err
	}
	unlock, err := lockFile(ctx, filepath.Join(c.root, "lock"))
	if err != nil {
		return Binaries{}, fmt.Errorf("waiting for the lock of %s: %w", c.root, err)
	}
	defer unlock()
	if present(dir) {
		return found, nil
	}
	return found, c.install(ctx, dir)
}

// install builds into a temporary directory and renames it to dir. The caller holds the lock, so temporary
// directories that are there already belong to builds that died.
func (c kubeCache) install(ctx context.Context, dir string) error {
	dead, err := filepath.Glob(filepath.Join(c.root, "build-*"))
	if err != nil {
		return err
	}
	for _, old := range dead {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("removing a dead build: %w", err)
		}
	}
	temp, err := os.MkdirTemp(c.root, "build-")
	if err != nil {
		return err
	}
	err = c.buildIn(ctx, temp, dir)
	return errors.Join(err, os.RemoveAll(temp))
}

func (c kubeCache) buildIn(ctx context.Context, temp, dir string) error {
	module, out := filepath.Join(temp, "module"), filepath.Join(temp, "bin")
	for _, d := range []string{module, out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	files := []struct {
		path    string
		content []byte
		mode    os.FileMode
	}{
		{filepath.Join(module, "go.mod"), kubeMod, 0o644},
		{filepath.Join(module, "go.sum"), kubeSum, 0o644},
		{filepath.Join(out, "launch"), []byte(launchScript), 0o755},
	}
	for _, f := range files {
		if err := os.WriteFile(f.path, f.content, f.mode); err != nil {
			return err
		}
	}
	if err := c.build(ctx, module, out, c.progress); err != nil {
		return err
	}
	return os.Rename(out, dir)
}

func present(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// cacheKey names what is built: versions for the reader, and a hash of all that goes into the build.
func cacheKey() string {
	sum := sha256.New()
	for _, part := range []string{string(kubeMod), string(kubeSum), ldflags(), launchScript} {
		fmt.Fprintf(sum, "%d %s", len(part), part)
	}
	return fmt.Sprintf("kubernetes-%s-etcd-%s-%s-%s-%s", KubernetesVersion, EtcdVersion,
		runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum.Sum(nil))[:12])
}

// ldflags stamp the version as Kubernetes' own build does: unstamped, the server calls itself v0.0.0-master.
func ldflags() string {
	parts := strings.Split(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	var flags strings.Builder
	flags.WriteString("-s -w")
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&flags, " -X %s.gitVersion=%s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
			pkg, KubernetesVersion, parts[0], parts[1])
	}
	return flags.String()
}

// goBuild is the real build. It takes what kube.mod and kube.sum pin and nothing else: no workspace, no
// GOFLAGS, no change of go.mod.
func goBuild(ctx context.Context, module, out string, progress io.Writer) error {
	programs := []struct{ name, pkg string }{
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	}
	for _, program := range programs {
		fmt.Fprintf(progress, "building %s (once; minutes)\n", program.name)
		var output bytes.Buffer
		cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
			"-ldflags", ldflags(), "-o", filepath.Join(out, program.name), program.pkg)
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
		cmd.Stdout, cmd.Stderr = &output, io.MultiWriter(&output, progress)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", program.pkg, err, output.Bytes())
		}
	}
	return nil
}
