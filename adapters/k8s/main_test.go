package k8s_test

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

var kube testenv.SharedKubernetes

func TestMain(m *testing.M) {
	if os.Getenv(renewing) == "" {
		os.Exit(kube.Run(m))
	}
	if err := renewLocks(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "renewing locks:", err)
		os.Exit(1)
	}
}

// writtenAt is what the clock of every client says.
func writtenAt() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC) }

func newClient(tb testing.TB, config *rest.Config) *k8s.Client {
	tb.Helper()
	c, err := k8s.NewClient(config, k8s.Options{Now: writtenAt, Logger: slog.New(slog.NewTextHandler(tb.Output(), nil))})
	require.NoError(tb, err)
	return c
}

func connect(tb testing.TB, config *rest.Config, spec journal.Target) projector.Target {
	tb.Helper()
	target, err := newClient(tb, config).Connect("g", spec)
	require.NoError(tb, err)
	return target
}

// world is a namespace, with a clientset that is not under test.
type world struct {
	*testing.T
	config    *rest.Config
	namespace string
	clientset *kubernetes.Clientset
}

func newWorld(t *testing.T) *world {
	config := kube.Config(t)
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return &world{T: t, config: config, namespace: testenv.Namespace(t, config), clientset: c}
}

func (w *world) flink() journal.Target {
	return journal.Target{Name: "cm", Kind: k8s.ConfigMap, Layout: k8s.Flink, Namespace: w.namespace, Object: "leaders"}
}

func (w *world) json() journal.Target {
	return journal.Target{Name: "cm", Kind: k8s.ConfigMap, Layout: k8s.JSON, Namespace: w.namespace, Object: "leaders"}
}

func (w *world) lease() journal.Target {
	return journal.Target{Name: "lease", Kind: k8s.Lease, Namespace: w.namespace}
}

func (w *world) configMap(name string) *corev1.ConfigMap {
	w.Helper()
	cm, err := w.clientset.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return cm
}

func (w *world) create(cm *corev1.ConfigMap) *corev1.ConfigMap {
	w.Helper()
	cm, err := w.clientset.CoreV1().ConfigMaps(w.namespace).Create(w.Context(), cm, metav1.CreateOptions{})
	require.NoError(w, err)
	return cm
}

func (w *world) update(cm *corev1.ConfigMap) *corev1.ConfigMap {
	w.Helper()
	cm, err := w.clientset.CoreV1().ConfigMaps(w.namespace).Update(w.Context(), cm, metav1.UpdateOptions{})
	require.NoError(w, err)
	return cm
}

func (w *world) patch(name, by string) *corev1.ConfigMap {
	w.Helper()
	maps := w.clientset.CoreV1().ConfigMaps(w.namespace)
	cm, err := maps.Patch(w.Context(), name, types.MergePatchType, []byte(by), metav1.PatchOptions{})
	require.NoError(w, err)
	return cm
}

const (
	session1 = "01234567-89ab-cdef-fedc-ba9876543210"
	session2 = "11111111-89ab-cdef-fedc-ba9876543210"
	session3 = "22222222-89ab-cdef-fedc-ba9876543210"
)

func leader(session, candidate string) *journal.LeaderInfo {
	return &journal.LeaderInfo{Session: session, Candidate: candidate, Address: "http://" + candidate + ":8081"}
}

// shared is a document of an object that shows several components.
func shared(sequence uint64, leaders map[string]*journal.LeaderInfo) *projector.Document {
	doc := &projector.Document{Group: "g", Sequence: sequence, Projector: 3, Entries: map[string]projector.Entry{}}
	for component, l := range leaders {
		doc.Entries[component] = projector.Entry{Sequence: sequence, Epoch: sequence, Phase: "confirmed", Leader: l}
	}
	return doc
}

// single is a document of an object of one component.
func single(component string, sequence uint64, l *journal.LeaderInfo) *projector.Document {
	doc := shared(sequence, map[string]*journal.LeaderInfo{component: l})
	doc.Component = component
	return doc
}

func (w *world) push(target projector.Target, doc *projector.Document) projector.Receipt {
	w.Helper()
	receipt, err := target.Push(w.Context(), doc)
	require.NoError(w, err)
	return receipt
}
