package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
)

const (
	shown  = "shown" // the group whose leaders a ConfigMap shows
	plain  = "plain" // the group that only the built-in bucket shows
	object = "leaders"
)

// cluster is a namespace of the API server, and a witness of the ConfigMap in it.
type cluster struct {
	t         *testing.T
	config    *rest.Config
	namespace string
	witness   *witness
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, config: kube.Config(t)}
	c.namespace = testenv.Namespace(t, c.config)
	clientset, err := kubernetes.NewForConfig(c.config)
	require.NoError(t, err)
	w, err := clientset.CoreV1().ConfigMaps(c.namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + object})
	require.NoError(t, err)
	c.witness = &witness{present: map[string]int{}, steady: map[string]bool{}, changed: make(chan struct{})}
	t.Cleanup(w.Stop)
	go c.witness.follow(w.ResultChan())
	return c
}

// settings writes a configuration that has one group shown by the ConfigMap, and returns the flag that names it. The
// API server is reached as config says.
func (c *cluster) settings(config *rest.Config, more string) string {
	c.t.Helper()
	text := fmt.Sprintf("kubernetes: {kubeconfig: %q}\ngroups:\n  - name: %s\n    targets:\n"+
		"      - {name: cm, kind: k8s/configmap, layout: json, namespace: %s, object: %s}\n%s",
		testenv.Kubeconfig(c.t, config), shown, c.namespace, object, more)
	file := filepath.Join(c.t.TempDir(), "journald.yaml")
	require.NoError(c.t, os.WriteFile(file, []byte(text), 0o600))
	return "--config=" + file
}

// witness sees every change of the ConfigMap, and notes what must never happen to it.
type witness struct {
	mu      sync.Mutex
	latest  *corev1.ConfigMap
	fence   uint64
	present map[string]int  // the highest number of an address that a component was seen with
	steady  map[string]bool // components that are never withdrawn
	updates int
	faults  []string
	changed chan struct{}
}

// expect names the components that must never be absent once they were seen.
func (w *witness) expect(l *load) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range l.publishers {
		w.steady[p.component] = w.steady[p.component] || p.group == shown && p.steady
	}
}

func (w *witness) follow(events <-chan watch.Event) {
	for e := range events {
		cm, ok := e.Object.(*corev1.ConfigMap)
		w.mu.Lock()
		switch {
		case !ok:
			w.faults = append(w.faults, fmt.Sprintf("the watch says %s: %+v", e.Type, e.Object))
		case e.Type == watch.Deleted:
			w.faults = append(w.faults, "the object was deleted")
		default:
			w.see(cm)
		}
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
}

func (w *witness) see(cm *corev1.ConfigMap) {
	w.latest = cm
	w.updates++
	fence, err := fenceOf(cm)
	if err != nil || fence < w.fence {
		w.faults = append(w.faults, fmt.Sprintf("at %s the fence is %d after %d: %v", cm.ResourceVersion, fence, w.fence, err))
	}
	w.fence = max(w.fence, fence)
	entries, err := entriesOf(cm)
	if err != nil {
		w.faults = append(w.faults, err.Error())
	}
	for component, leader := range entries {
		n := numberOf(leader.Address)
		if n < w.present[component] {
			w.faults = append(w.faults, fmt.Sprintf("at %s %s went back from %d to %s", cm.ResourceVersion, component, w.present[component], leader.Address))
		}
		w.present[component] = max(n, w.present[component])
	}
	for component := range w.present {
		if _, there := entries[component]; !there && w.steady[component] {
			w.faults = append(w.faults, fmt.Sprintf("at %s %s is absent", cm.ResourceVersion, component))
		}
	}
}

func fenceOf(cm *corev1.ConfigMap) (uint64, error) {
	return strconv.ParseUint(cm.Annotations["leadership-journal.io/sequence"], 10, 64)
}

func entriesOf(cm *corev1.ConfigMap) (map[string]journal.LeaderInfo, error) {
	entries := map[string]journal.LeaderInfo{}
	for component, text := range cm.Data {
		var leader journal.LeaderInfo
		if err := json.Unmarshal([]byte(text), &leader); err != nil {
			return nil, fmt.Errorf("%s of the object can't be read: %w: %q", component, err, text)
		}
		entries[component] = leader
	}
	return entries, nil
}

// numberOf is what an address of the load ends with; it rises within a component.
func numberOf(address string) int {
	n, err := strconv.Atoi(address[strings.LastIndexByte(address, '/')+1:])
	if err != nil {
		return -1
	}
	return n
}

// faultless fails the test where the object was seen to do what it must not.
func (w *witness) faultless(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, slices.Clone(w.faults))
}

// state is what the object shows now, and its fence.
func (w *witness) state() (fence uint64, entries map[string]journal.LeaderInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.latest == nil {
		return 0, nil
	}
	entries, _ = entriesOf(w.latest) // what can't be read is a fault that is noted
	return w.fence, entries
}
