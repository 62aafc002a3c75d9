package k8s_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/projector/conformance"
)

// TestConformance fails writes in three ways: an answer of the API server's, a gateway's, and a connection that breaks.
func TestConformance(t *testing.T) {
	for name, s := range map[string]style{
		"flink": {
			spec: journal.Target{Name: "cm", Kind: k8s.ConfigMap, Layout: k8s.Flink, Object: "leaders"},
			visible: func(l journal.LeaderInfo) journal.LeaderInfo {
				return journal.LeaderInfo{Session: l.Session, Address: l.Address}
			},
			read: readFlink, show: showFlink, name: "leaders", resource: configMaps(), status: http.StatusServiceUnavailable,
		},
		"json": {
			spec:    journal.Target{Name: "cm", Kind: k8s.ConfigMap, Layout: k8s.JSON, Object: "leaders"},
			visible: func(l journal.LeaderInfo) journal.LeaderInfo { return l },
			read:    readJSON, show: showJSON, name: "leaders", resource: configMaps(), status: 0,
		},
		"lease": {
			spec:    journal.Target{Name: "lease", Kind: k8s.Lease},
			visible: func(l journal.LeaderInfo) journal.LeaderInfo { return l },
			read:    readLease, show: showLease, name: "conformance-restserver", resource: leases(), status: http.StatusGatewayTimeout,
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Suite{New: s.newObject, Visible: s.visible}.Run(t)
		})
	}
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func leases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}

// style is a kind and layout, read and written by hand.
type style struct {
	spec     journal.Target
	visible  func(journal.LeaderInfo) journal.LeaderInfo
	read     func(o map[string]any) map[string]journal.LeaderInfo
	show     func(o map[string]any, component string, l *journal.LeaderInfo)
	name     string
	resource schema.GroupVersionResource
	status   int // of writes that fail
}

// object is one object of the API, behind two proxies: one that breaks connections, one that fails requests.
type object struct {
	style
	config *rest.Config
	faults *testenv.HTTPFaults
	proxy  *testenv.TCPProxy
	gate   *gate
	direct dynamic.ResourceInterface
}

func (s style) newObject(tb testing.TB) conformance.Object {
	config := kube.Config(tb)
	direct, err := dynamic.NewForConfig(config)
	require.NoError(tb, err)
	s.spec.Namespace = testenv.Namespace(tb, config)
	o := &object{style: s, faults: testenv.NewHTTPFaults(tb, config), direct: direct.Resource(s.resource).Namespace(s.spec.Namespace)}
	o.config = o.faults.Config()
	o.gate = &gate{ended: tb.Context()}
	o.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &gated{gate: o.gate, next: next} })
	o.proxy = testenv.NewTCPProxy(tb, strings.TrimPrefix(o.config.Host, "http://"))
	o.config.Host = "http://" + o.proxy.Addr()
	return o
}

func (o *object) Target(tb testing.TB) projector.Target {
	target, err := newClient(tb, o.config).Connect(conformance.Group, o.spec)
	require.NoError(tb, err)
	return target
}

func (o *object) get(tb testing.TB) *unstructured.Unstructured {
	u, err := o.direct.Get(tb.Context(), o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(tb, err)
	return u
}

func (o *object) Read(tb testing.TB) conformance.Shown {
	u := o.get(tb)
	if u == nil {
		return conformance.Shown{Entries: map[string]journal.LeaderInfo{}}
	}
	shown := conformance.Shown{Entries: o.read(u.Object)}
	if text := u.GetAnnotations()[k8s.SequenceAnnotation]; text != "" {
		var err error
		shown.Sequence, err = strconv.ParseUint(text, 10, 64)
		require.NoError(tb, err)
	}
	shown.Others = o.others(tb, u)
	return shown
}

// others is the object without what is ours.
func (o *object) others(tb testing.TB, u *unstructured.Unstructured) string {
	for component := range o.read(u.Object) {
		o.show(u.Object, component, nil)
	}
	annotations := u.GetAnnotations()
	maps.DeleteFunc(annotations, func(name, _ string) bool { return strings.HasPrefix(name, "leadership-journal.io/") })
	text, err := json.Marshal(map[string]any{
		"data": u.Object["data"], "binaryData": u.Object["binaryData"], "labels": u.GetLabels(), "annotations": annotations,
		"owners": u.GetOwnerReferences(), "finalizers": u.GetFinalizers(), "immutable": u.Object["immutable"],
	})
	require.NoError(tb, err)
	return string(text)
}

func (o *object) Write(tb testing.TB, change conformance.Change) {
	for {
		err := o.write(tb.Context(), o.get(tb), change)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			continue
		}
		require.NoError(tb, err)
		return
	}
}

func (o *object) write(ctx context.Context, u *unstructured.Unstructured, change conformance.Change) error {
	if change.Delete {
		return o.direct.Delete(ctx, o.name, metav1.DeleteOptions{})
	}
	created := u == nil
	if created {
		kind := map[string]string{"configmaps": "ConfigMap", "leases": "Lease"}[o.resource.Resource]
		u = &unstructured.Unstructured{Object: map[string]any{"kind": kind, "apiVersion": o.resource.GroupVersion().String()}}
		u.SetName(o.name)
	}
	o.alter(u, change)
	var err error
	if created {
		_, err = o.direct.Create(ctx, u, metav1.CreateOptions{})
	} else {
		_, err = o.direct.Update(ctx, u, metav1.UpdateOptions{})
	}
	return err
}

func (o *object) alter(u *unstructured.Unstructured, change conformance.Change) {
	for component, l := range change.Entries {
		o.show(u.Object, component, l)
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if change.Sequence != 0 {
		annotations[k8s.SequenceAnnotation] = strconv.FormatUint(change.Sequence, 10)
	}
	if change.Unfence {
		maps.DeleteFunc(annotations, func(name, _ string) bool {
			return name == k8s.SequenceAnnotation || name == k8s.ProjectorAnnotation || name == k8s.SubjectAnnotation
		})
	}
	if change.Noise != "" {
		annotations["example.com/noise"] = change.Noise
		u.SetLabels(map[string]string{"noise": strings.ReplaceAll(change.Noise, " ", "-"), "app.kubernetes.io/managed-by": "somebody"})
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "0000"}})
		if o.resource.Resource == "configmaps" {
			u.Object["binaryData"] = map[string]any{"b": "AAEC"}
			entry(u.Object, "data")["jobGraph-0"] = change.Noise
		}
	}
	u.SetAnnotations(annotations)
}

func (o *object) Fail(_ testing.TB, fault conformance.Fault) {
	switch fault {
	case conformance.NoFault:
		o.faults.Set()
	case conformance.NotApplied:
		o.faults.Set(testenv.Fault{Match: testenv.Writes, Status: o.status})
	case conformance.Applied:
		o.faults.Set(testenv.Fault{Match: testenv.Writes, Status: o.status, Applied: true})
	}
}

func (o *object) Hold(tb testing.TB) conformance.Held {
	h := &hold{reached: make(chan struct{}), let: make(chan struct{}), answered: make(chan struct{})}
	o.gate.mu.Lock()
	defer o.gate.mu.Unlock()
	o.gate.next = h
	return conformance.Held{Reached: h.reached, Let: func() {
		close(h.let)
		select {
		case <-h.answered:
		case <-tb.Context().Done():
		}
	}}
}

func (o *object) Drop(testing.TB) {
	o.proxy.Cut()
	o.proxy.Resume()
}

// gate holds the next write of all targets of an object.
type gate struct {
	ended context.Context
	mu    sync.Mutex
	next  *hold
}

type hold struct{ reached, let, answered chan struct{} }

type gated struct {
	gate *gate
	next http.RoundTripper
}

// RoundTrip carries a held write out once it is let, also when who made it has given up.
func (g *gated) RoundTrip(r *http.Request) (*http.Response, error) {
	h := g.gate.take(r)
	if h == nil {
		return g.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{}) // what is held is on its way
	}
	later := r.Clone(g.gate.ended)
	later.Body = io.NopCloser(bytes.NewReader(body))
	close(h.reached)
	answers := make(chan answer, 1)
	go func() {
		select {
		case <-h.let:
		case <-g.gate.ended.Done():
			return
		}
		response, err := g.next.RoundTrip(later) //nolint:bodyclose // whoever gets the answer closes it
		close(h.answered)
		answers <- answer{response, err}
	}()
	select {
	case a := <-answers:
		return a.response, a.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type answer struct {
	response *http.Response
	err      error
}

func (g *gate) take(r *http.Request) *hold {
	if !testenv.Writes(r) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.next
	g.next = nil
	return h
}

// entry is a map within an object, made where there is none.
func entry(o map[string]any, field string) map[string]any {
	m, ok := o[field].(map[string]any)
	if !ok {
		m = map[string]any{}
		o[field] = m
	}
	return m
}

const flinkPrefix = "org.apache.flink.k8s.leader."

func readFlink(o map[string]any) map[string]journal.LeaderInfo {
	all := map[string]journal.LeaderInfo{}
	for key, value := range entry(o, "data") {
		if component, ok := strings.CutPrefix(key, flinkPrefix); ok {
			session, address, _ := strings.Cut(value.(string), ",")
			all[component] = journal.LeaderInfo{Session: session, Address: address}
		}
	}
	return all
}

func showFlink(o map[string]any, component string, l *journal.LeaderInfo) {
	delete(entry(o, "data"), flinkPrefix+component)
	if l != nil {
		entry(o, "data")[flinkPrefix+component] = l.Session + "," + l.Address
	}
}

func readJSON(o map[string]any) map[string]journal.LeaderInfo {
	all := map[string]journal.LeaderInfo{}
	for key, value := range entry(o, "data") {
		var l journal.LeaderInfo
		if err := json.Unmarshal([]byte(value.(string)), &l); err == nil && l.Session != "" {
			all[key] = l
		}
	}
	return all
}

func showJSON(o map[string]any, component string, l *journal.LeaderInfo) {
	delete(entry(o, "data"), component)
	if l != nil {
		text, _ := json.Marshal(l)
		entry(o, "data")[component] = string(text)
	}
}

func readLease(o map[string]any) map[string]journal.LeaderInfo {
	holder, _ := entry(o, "spec")["holderIdentity"].(string)
	if holder == "" {
		return map[string]journal.LeaderInfo{}
	}
	a := (&unstructured.Unstructured{Object: o}).GetAnnotations()
	return map[string]journal.LeaderInfo{
		conformance.First: {Candidate: holder, Session: a[k8s.SessionAnnotation], Address: a[k8s.AddressAnnotation]},
	}
}

func showLease(o map[string]any, _ string, l *journal.LeaderInfo) {
	u := &unstructured.Unstructured{Object: o}
	entry(o, "spec")["holderIdentity"] = ""
	a := u.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	delete(a, k8s.SessionAnnotation)
	delete(a, k8s.AddressAnnotation)
	if l != nil {
		entry(o, "spec")["holderIdentity"] = l.Candidate
		a[k8s.SessionAnnotation], a[k8s.AddressAnnotation] = l.Session, l.Address
	}
	u.SetAnnotations(a)
}
