package k8s

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// fieldManager is who the API server says wrote our fields.
const fieldManager = "journald"

// readTimeout bounds a read that nobody waits for but a watch.
const readTimeout = 30 * time.Second

// version is an object at one moment. Its content must not be changed.
type version struct {
	revision uint64
	object   *unstructured.Unstructured // nil: there is none
}

// resource is one object of the API by its address.
type resource struct {
	client    *Client
	kind      kind
	namespace string
	name      string
}

// String is for errors.
func (r *resource) String() string { return r.kind.resource + " " + r.namespace + "/" + r.name }

// request is a request that client-go never repeats by itself: only the caller knows what is safe to repeat.
func (r *resource) request(verb string) *rest.Request {
	return r.client.rest[r.kind.name].Verb(verb).Namespace(r.namespace).Resource(r.kind.resource).MaxRetries(0)
}

// do carries out a request. The error is the API server's own where it gave one.
func (r *resource) do(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(r.client.context(ctx))
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// get reads the object as it is now. That there is none has the revision 0.
func (r *resource) get(ctx context.Context) (*version, error) {
	body, err := r.do(ctx, r.request(http.MethodGet).Name(r.name))
	if notFound(err) {
		return &version{}, nil
	}
	if err != nil {
		return nil, classifyRead(fmt.Errorf("get %s: %w", r, err))
	}
	return decode(body)
}

// list reads the object as it is now, with the revision of the whole collection: one to watch from, and one that says
// when there was none.
func (r *resource) list(ctx context.Context) (v *version, from uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	body, err := r.do(ctx, r.request(http.MethodGet).Param("fieldSelector", r.selector()))
	if err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", r, err)
	}
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(body); err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", r, err)
	}
	if from, err = parseRevision(list.GetResourceVersion()); err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", r, err)
	}
	if len(list.Items) == 0 {
		return &version{revision: from}, from, nil
	}
	v, err = newVersion(&list.Items[0])
	return v, from, err
}

// watch opens the stream of changes after a revision.
func (r *resource) watch(ctx context.Context, from uint64, lasting time.Duration) (io.ReadCloser, error) {
	body, err := r.request(http.MethodGet).
		Param("fieldSelector", r.selector()).
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("resourceVersion", strconv.FormatUint(from, 10)).
		Param("timeoutSeconds", strconv.Itoa(int(lasting.Seconds()))).
		Stream(r.client.context(ctx))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", r, err)
	}
	return body, nil
}

func (r *resource) selector() string {
	return fields.OneTermEqualSelector("metadata.name", r.name).String()
}

// write creates the object, or replaces the version whose resourceVersion it carries.
func (r *resource) write(ctx context.Context, o *unstructured.Unstructured) (*version, error) {
	body, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r, err)
	}
	req, what := r.request(http.MethodPost), "create"
	if o.GetResourceVersion() != "" {
		req, what = r.request(http.MethodPut).Name(r.name), "update"
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	answer, err := r.do(ctx, req.Param("fieldManager", fieldManager).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body))
	if err != nil {
		return nil, classifyWrite(fmt.Errorf("%s %s: %w", what, r, err), sent.Load(), what == "create")
	}
	v, err := decode(answer)
	if err != nil {
		return nil, classifyWrite(fmt.Errorf("%s %s: %w", what, r, err), true, false)
	}
	return v, nil
}

func decode(body []byte) (*version, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("decode an object: %w", err)
	}
	return newVersion(o)
}

func newVersion(o *unstructured.Unstructured) (*version, error) {
	revision, err := parseRevision(o.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	return &version{revision: revision, object: o}, nil
}

// parseRevision reads a resourceVersion, which is a number that rises (KEP-5504).
func parseRevision(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number", s)
	}
	return n, nil
}
