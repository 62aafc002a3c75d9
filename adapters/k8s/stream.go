package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	watchLasts = 5 * time.Minute  // at least, at most twice that; then the API server ends it
	watchGrace = 30 * time.Second // after which a watch that did not end so is taken for dead
)

// stream is a watch that is open.
type stream struct {
	resource *resource
	cancel   context.CancelFunc
	body     io.ReadCloser
	changes  *jsontext.Decoder
	opened   time.Time
	from     uint64 // how far it has come
}

// open watches from a revision on. Its end is due after some minutes, not for all watches at once.
func (r *resource) open(ctx context.Context, from uint64) (*stream, error) {
	lasting := watchLasts + rand.N(watchLasts)
	ctx, cancel := context.WithTimeout(ctx, lasting+watchGrace)
	late := time.AfterFunc(r.client.patience.answer, cancel)
	body, err := r.request(http.MethodGet).
		Param("fieldSelector", r.selector()).
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("resourceVersion", strconv.FormatUint(from, 10)).
		Param("timeoutSeconds", strconv.Itoa(int(lasting.Seconds()))).
		Stream(r.client.context(ctx))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch %s: %w", r, err)
	}
	if !late.Stop() {
		return nil, fmt.Errorf("watch %s: %w", r, errors.Join(context.Canceled, body.Close()))
	}
	return &stream{
		resource: r, cancel: cancel, body: body, changes: jsontext.NewDecoder(body, trusting()), opened: time.Now(), from: from,
	}, nil
}

// next waits for a change. It is nil at the end of a watch that the API server ended in order.
func (s *stream) next() (*version, error) {
	for {
		var change struct {
			Type   string         `json:"type"`
			Object jsontext.Value `json:"object"`
		}
		err := json.UnmarshalDecode(s.changes, &change)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		var v *version
		if err == nil {
			v, err = s.read(change.Type, change.Object)
		}
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", s.resource, err)
		}
		if v != nil {
			return v, nil
		}
	}
}

// read takes note of how far the watch has come, and is the object as it is now, or nil where only that was to be told.
func (s *stream) read(kind string, object jsontext.Value) (*version, error) {
	if kind == "ERROR" {
		return nil, statusError(object)
	}
	v, err := newVersion(object)
	if err != nil {
		return nil, err
	}
	if v.revision < s.from {
		return nil, fmt.Errorf("the revision fell from %d to %d", s.from, v.revision)
	}
	s.from = v.revision
	switch kind {
	case "ADDED", "MODIFIED":
		return v, nil
	case "DELETED":
		return &version{revision: v.revision}, nil
	}
	return nil, nil
}

func statusError(text jsontext.Value) error {
	status := &metav1.Status{}
	if err := json.Unmarshal(text, status); err != nil {
		return fmt.Errorf("decode an error: %w", err)
	}
	return &apierrors.StatusError{ErrStatus: *status}
}

func (s *stream) close() error {
	defer s.cancel()
	return s.body.Close()
}
