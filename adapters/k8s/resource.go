package k8s

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// fieldManager is who the API server says wrote our fields.
const fieldManager = "journald"

// resource is one object of the API by its address.
type resource struct {
	client    *Client
	kind      kind
	namespace string
	name      string
	glimpse   bool // a watch of it keeps no text
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
	return newVersion(body)
}

// list reads the object as it is now, with the revision of the whole collection: one to watch from, and one that says
// when there was none.
func (r *resource) list(ctx context.Context) (v *version, from uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.client.patience.answer)
	defer cancel()
	body, err := r.do(ctx, r.request(http.MethodGet).Param("fieldSelector", r.selector()))
	if err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", r, err)
	}
	if v, from, err = decodeList(body); err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", r, err)
	}
	return v, from, nil
}

func decodeList(body []byte) (v *version, from uint64, err error) {
	var list struct {
		Metadata struct {
			Revision string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []jsontext.Value `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, 0, fmt.Errorf("decode: %w", err)
	}
	if from, err = parseRevision(list.Metadata.Revision); err != nil {
		return nil, 0, err
	}
	if len(list.Items) == 0 {
		return &version{revision: from}, from, nil
	}
	v, err = newVersion(list.Items[0])
	return v, from, err
}

func (r *resource) selector() string {
	return fields.OneTermEqualSelector("metadata.name", r.name).String()
}

// write creates the object, or replaces the version whose resourceVersion it carries.
func (r *resource) write(ctx context.Context, body []byte, creating bool) (*version, error) {
	req, what := r.request(http.MethodPut).Name(r.name), "update"
	if creating {
		req, what = r.request(http.MethodPost), "create"
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	answer, err := r.do(ctx, req.Param("fieldManager", fieldManager).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body))
	if err != nil {
		return nil, classifyWrite(fmt.Errorf("%s %s: %w", what, r, err), sent.Load(), creating)
	}
	v, err := newVersion(answer)
	if err != nil {
		return nil, classifyWrite(fmt.Errorf("%s %s: %w", what, r, err), true, false)
	}
	return v, nil
}
