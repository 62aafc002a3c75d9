package flink

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/leadership-journal/journald/internal/testenv"
)

const (
	keyPrefix      = "org.apache.flink.k8s.leader."
	fence          = "leadership-journal.io/sequence"
	lockAnnotation = "control-plane.alpha.kubernetes.io/leader"
)

// cluster is a namespace of a real API server, seen directly by the test, and by journald through a proxy that fails.
type cluster struct {
	t         *testing.T
	namespace string
	maps      v1.ConfigMapInterface
	faults    *testenv.HTTPFaults
	late      *lateWrites
}

func newCluster(t *testing.T, unfenced bool) *cluster {
	t.Helper()
	config := kube.Config(t)
	c := &cluster{t: t, namespace: testenv.Namespace(t, config), faults: testenv.NewHTTPFaults(t, config)}
	client, err := v1.NewForConfig(config)
	require.NoError(t, err)
	c.maps = client.ConfigMaps(c.namespace)
	upstream, err := url.Parse(c.faults.Config().Host)
	require.NoError(t, err)
	c.late = &lateWrites{proxy: httputil.NewSingleHostReverseProxy(upstream), unfenced: unfenced}
	c.late.server = httptest.NewServer(c.late)
	t.Cleanup(c.late.server.Close)
	t.Cleanup(c.late.release)
	return c
}

// lateWrites is a proxy that can keep a write back, and let it land when nobody waits for it any more. Unfenced, it
// takes away what makes such a write harmless: the version that it is conditional on, and the fence.
type lateWrites struct {
	proxy    *httputil.ReverseProxy
	server   *httptest.Server
	unfenced bool

	mu   sync.Mutex
	hold chan struct{} // closed when writes may go on; nil: they are not kept back
	kept chan struct{} // one token for each that is
	sent sync.WaitGroup
}

// keep has every write kept back from here on; the channel says when one is.
func (l *lateWrites) keep() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold, l.kept = make(chan struct{}), make(chan struct{}, 100)
	return l.kept
}

// pass has new writes pass again; those that are kept back stay so.
func (l *lateWrites) pass() (land func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hold := l.hold
	l.hold = nil
	return func() {
		close(hold)
		l.sent.Wait()
	}
}

func (l *lateWrites) release() {
	l.mu.Lock()
	hold := l.hold
	l.hold = nil
	l.mu.Unlock()
	if hold != nil {
		close(hold)
	}
}

// ServeHTTP implements [http.Handler].
func (l *lateWrites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		l.proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if l.unfenced {
		body = unconditional(body)
	}
	l.mu.Lock()
	hold := l.hold
	l.mu.Unlock()
	if hold != nil {
		l.sent.Add(1)
		defer l.sent.Done()
		l.kept <- struct{}{}
		<-hold
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // its sender is gone, it lands all the same
		defer cancel()
		r = r.WithContext(ctx)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Del("Content-Length")
	l.proxy.ServeHTTP(w, r)
}

// unconditional takes the version and the fence out of an object.
func unconditional(body []byte) []byte {
	var object map[string]jsontext.Value
	var meta map[string]jsontext.Value
	if json.Unmarshal(body, &object) != nil || json.Unmarshal(object["metadata"], &meta) != nil {
		return body
	}
	delete(meta, "resourceVersion")
	var annotations map[string]string
	if json.Unmarshal(meta["annotations"], &annotations) == nil {
		delete(annotations, fence)
		meta["annotations"] = encode(annotations)
	}
	object["metadata"] = encode(meta)
	return encode(object)
}

func encode(v any) jsontext.Value {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return text
}

// follow watches the ConfigMap itself and notes every value that a component's key was ever seen to have.
func (c *cluster) follow(component string) *history {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	w, err := c.maps.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "leaders").String()})
	require.NoError(c.t, err)
	h := &history{changed: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			h.note(e, component)
		}
	}()
	c.t.Cleanup(func() { cancel(); w.Stop(); <-done })
	return h
}

// history is what a key was seen to have, one element for each change; "" where it was absent.
type history struct {
	mu       sync.Mutex
	values   []string
	revision uint64
	changed  chan struct{}
}

func (h *history) note(e watch.Event, component string) {
	cm, ok := e.Object.(*corev1.ConfigMap)
	if !ok {
		return
	}
	value := cm.Data[keyPrefix+component]
	if e.Type == watch.Deleted {
		value = ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revision = revision(cm)
	if len(h.values) > 0 && h.values[len(h.values)-1] != value || len(h.values) == 0 && value != "" {
		h.values = append(h.values, value)
	}
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

func (h *history) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.values...)
}

func revision(cm *corev1.ConfigMap) uint64 {
	n, err := strconv.ParseUint(cm.ResourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// upTo waits until everything up to a revision has been seen.
func (h *history) upTo(n uint64) bool {
	return h.until(limit, func() bool { return h.revision >= n })
}

// await waits until the key has a session's value; it is false where it never does.
func (h *history) await(session string, within time.Duration) bool {
	return h.until(within, func() bool {
		return len(h.values) > 0 && strings.HasPrefix(h.values[len(h.values)-1], session+",")
	})
}

func (h *history) until(within time.Duration, ok func() bool) bool {
	deadline := time.After(within)
	for {
		h.mu.Lock()
		is := ok()
		h.mu.Unlock()
		if is {
			return true
		}
		select {
		case <-h.changed:
		case <-deadline:
			return false
		}
	}
}
