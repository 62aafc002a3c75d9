package journald

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
)

const (
	requestTimeout  = 30 * time.Second
	connectionsKept = 256
)

// Client speaks HTTP to journald as services do, with connections that are kept. A request takes 30 s at most, and is
// never repeated. It is safe for concurrent use.
type Client struct{ http http.Client }

// NewClient makes a client. It keeps a connection for each of up to 256 requests that it makes at a time.
func NewClient() *Client {
	return &Client{http.Client{Timeout: requestTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: connectionsKept}}}
}

// Refusal is an answer that is not 2xx.
type Refusal struct {
	Status int
	Text   string // the body
}

func (r *Refusal) Error() string { return fmt.Sprintf("HTTP %d: %s", r.Status, r.Text) }

// Final says that sending the same again gives the same.
func Final(err error) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && r.Status < http.StatusInternalServerError && r.Status != http.StatusTooManyRequests
}

// Do asks, and returns the body of a 2xx answer. Any other is a [Refusal]. A body that is not nil is JSON.
func (c *Client) Do(ctx context.Context, method, url string, body []byte) ([]byte, error) {
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
		return nil, &Refusal{response.StatusCode, string(text)}
	}
	return text, nil
}

// Get asks for JSON and decodes it into what answer points to.
func (c *Client) Get(ctx context.Context, url string, answer any) error {
	text, err := c.Do(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	return nil
}

// Publish appends events in one request to the journald at url, all or none. The query says what to wait for, such as
// "?wait=applied"; empty: until they are stored.
func (c *Client) Publish(ctx context.Context, url, query string, events ...journal.Event) ([]api.Ack, error) {
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
	text, err := c.Do(ctx, http.MethodPost, url+"/v1/events"+query, append(body, ']'))
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
