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
		var change change
		change.Object.glimpsed = s.resource.glimpse
		err := json.UnmarshalDecode(s.changes, &change)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err == nil {
			err = s.take(&change)
		}
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", s.resource, err)
		}
		switch change.Type {
		case "ADDED", "MODIFIED":
			return &change.Object, nil
		case "DELETED":
			return &version{revision: s.from}, nil
		}
	}
}

// change is what comes of a watch.
type change struct {
	Type   string  `json:"type"`
	Object version `json:"object"`
}

// take notes how far the watch has come.
func (s *stream) take(c *change) error {
	if c.Type == "ERROR" {
		r := &c.Object.refusal
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: r.Code, Reason: r.Reason, Message: r.Message, Details: r.Details,
		}}
	}
	revision, err := parseRevision(c.Object.Metadata.Revision)
	if err != nil {
		return err
	}
	if revision < s.from {
		return fmt.Errorf("the revision fell from %d to %d", s.from, revision)
	}
	s.from, c.Object.revision = revision, revision
	return nil
}

func (s *stream) close() error {
	defer s.cancel()
	return s.body.Close()
}
