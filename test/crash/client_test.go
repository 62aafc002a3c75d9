package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
)

// answerTimeout is how long a service waits before it counts its answer as lost.
const answerTimeout = 2 * time.Second

// client speaks HTTP to journald as services do, with connections that are kept.
type client struct{ http http.Client }

func newClient() *client {
	return &client{http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
}

// refusal is an answer that is not the one hoped for.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("HTTP %d: %s", r.status, r.text) }

// final says that sending the same again gives the same.
func final(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status < http.StatusInternalServerError && r.status != http.StatusTooManyRequests
}

// do asks and returns the body of a 2xx answer.
func (c *client) do(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, &refusal{response.StatusCode, string(text)}
	}
	return text, nil
}

// publish appends events in one request; the query may say what to wait for.
func (c *client) publish(ctx context.Context, i *instance, query string, events ...journal.Event) ([]api.Ack, error) {
	body := []byte("[")
	for n := range events {
		text, err := events[n].Encode()
		if err != nil {
			return nil, err
		}
		if n > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
	}
	text, err := c.do(ctx, http.MethodPost, i.url+"/v1/events"+query, append(body, ']'))
	if err != nil {
		return nil, err
	}
	var acks []api.Ack
	if err := json.Unmarshal(text, &acks); err != nil {
		return nil, fmt.Errorf("read the acknowledgements: %w", err)
	}
	if len(acks) != len(events) {
		return nil, fmt.Errorf("%d acknowledgements for %d events", len(acks), len(events))
	}
	return acks, nil
}

// standing is what an instance says about itself.
type standing struct {
	ready    bool
	acts     bool
	epoch    uint64
	sequence uint64 // of the view
	hash     string // of the view then
	text     string
}

var (
	roleLine = regexp.MustCompile(`projector: (this|another) instance acts, epoch (\d+)`)
	viewLine = regexp.MustCompile(`view: sequence (\d+), viewHash ([0-9a-f]{64})`)
)

func (c *client) standing(ctx context.Context, i *instance) (standing, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	text, err := c.do(ctx, http.MethodGet, i.url+"/readyz?verbose", nil)
	s := standing{ready: err == nil, text: string(text)}
	if r, ok := errors.AsType[*refusal](err); ok && r.status == http.StatusServiceUnavailable {
		s.text, err = r.text, nil
	}
	if err != nil {
		return s, err
	}
	role, view := roleLine.FindStringSubmatch(s.text), viewLine.FindStringSubmatch(s.text)
	if role == nil || view == nil {
		return s, fmt.Errorf("readyz does not say who acts and how the view stands: %s", s.text)
	}
	s.acts, s.hash = role[1] == "this", view[2]
	var err1, err2 error
	s.epoch, err1 = strconv.ParseUint(role[2], 10, 64)
	s.sequence, err2 = strconv.ParseUint(view[1], 10, 64)
	return s, errors.Join(err1, err2)
}
