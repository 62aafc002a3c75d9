package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	componentStart = 2 * time.Minute // a machine that runs other tests beside
	componentStop  = 20 * time.Second
)

// Kubernetes is a kube-apiserver with an etcd of its own, and nothing else: no controller, no kubelet, so
// that what a namespace holds stays until the end. Its methods are for one goroutine at a time.
type Kubernetes struct {
	// Config is an administrator's, without a client-side rate limit. It outlives StopAPIServer.
	Config *rest.Config

	plane  *envtest.Environment
	reaper *reaper
	stderr *tail
}

// StartKubernetes starts an API server that answers requests when it returns. The caller stops it; should the
// caller's process die first, the servers die with it. ctx bounds the build of the binaries on first use,
// not the start itself, which gives up after some minutes, nor the life of what was started.
func StartKubernetes(ctx context.Context) (*Kubernetes, error) {
	binaries, err := KubeBinaries(ctx, io.Discard)
	if err != nil {
		return nil, err
	}
	log.SetLogger(logr.Discard()) // envtest's own; its errors are returned too
	reaper, err := startReaper()
	if err != nil {
		return nil, fmt.Errorf("starting Kubernetes: %w", err)
	}
	k := &Kubernetes{reaper: reaper, stderr: &tail{}}
	if err := k.start(binaries); err != nil {
		return nil, errors.Join(fmt.Errorf("starting Kubernetes: %w\n%s", err, k.stderr), reaper.reap())
	}
	return k, nil
}

func (k *Kubernetes) start(binaries Binaries) error {
	certs, data := filepath.Join(k.reaper.dir, "certs"), filepath.Join(k.reaper.dir, "data")
	apiServer, err := k.reaper.link(binaries.launcher, binaries.APIServer)
	if err != nil {
		return err
	}
	etcd, err := k.reaper.link(binaries.launcher, binaries.Etcd)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(certs, 0o700), os.Mkdir(data, 0o700)); err != nil {
		return err
	}
	existing := false
	k.plane = &envtest.Environment{
		UseExistingCluster: &existing,
		ControlPlane: envtest.ControlPlane{
			APIServer:   &envtest.APIServer{Path: apiServer, CertDir: certs, Err: k.stderr},
			Etcd:        &envtest.Etcd{Path: etcd, DataDir: data},
			KubectlPath: "kubectl", // never run; without it envtest looks for one
		},
		ControlPlaneStartTimeout: componentStart,
		ControlPlaneStopTimeout:  componentStop,
	}
	config, err := k.plane.Start()
	if err != nil {
		return err
	}
	config.QPS = -1
	k.Config = config
	return nil
}

// StopAPIServer stops the API server alone: requests find its port closed. What was stored stays.
func (k *Kubernetes) StopAPIServer() error {
	if err := k.plane.ControlPlane.APIServer.Stop(); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	return nil
}

// StartAPIServer starts a stopped API server again, at the same address, with the same certificates and data.
func (k *Kubernetes) StartAPIServer() error {
	if err := k.plane.ControlPlane.APIServer.Start(); err != nil {
		return fmt.Errorf("starting the API server again: %w\n%s", err, k.stderr)
	}
	return nil
}

// Stop stops the servers and removes all they stored. Nothing of them is left, even where it returns an error.
func (k *Kubernetes) Stop() error {
	err := k.plane.Stop()
	if err == nil {
		err = k.reaper.forget()
	}
	if err := errors.Join(err, k.reaper.reap()); err != nil {
		return fmt.Errorf("stopping Kubernetes: %w", err)
	}
	return nil
}

// NewKubernetes starts an API server for one test, which may stop and start it; see SharedKubernetes for tests
// that only use one.
func NewKubernetes(tb testing.TB) *Kubernetes {
	tb.Helper()
	k, err := StartKubernetes(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := k.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return k
}

// SharedKubernetes is one API server for all tests of a package, started by the first that asks. Its zero
// value is ready; Run stops it.
type SharedKubernetes struct{ shared shared[*Kubernetes] }

// Config returns the configuration of an administrator of the shared API server. Tests that share it keep to
// their own Namespace.
func (s *SharedKubernetes) Config(tb testing.TB) *rest.Config {
	tb.Helper()
	return rest.CopyConfig(s.shared.get(tb, StartKubernetes).Config)
}

// Run runs the tests, a *testing.M, and then stops the API server. It returns the exit code for TestMain.
func (s *SharedKubernetes) Run(tests interface{ Run() int }) int { return s.shared.run(tests) }

// Namespace creates a namespace that no other test has.
func Namespace(tb testing.TB, config *rest.Config) string {
	tb.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		tb.Fatalf("making a client for a namespace: %v", err)
	}
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	namespace, err := client.CoreV1().Namespaces().Create(tb.Context(), wanted, metav1.CreateOptions{})
	if err != nil {
		tb.Fatalf("creating a namespace: %v", err)
	}
	return namespace.Name
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 8 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-tailSize):]
	return len(p), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
