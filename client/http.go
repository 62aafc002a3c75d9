package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
)

const (
	dialTimeout   = 5 * time.Second
	appendTimeout = 15 * time.Second // of one journald: longer than it waits for its log
	renewTimeout  = 5 * time.Second
	maxAnswer     = 64 << 20
)

// overHTTP is a client of journalds. Over HTTP/1.1, so that a connection that is dead is given up with the request on it.
type overHTTP struct {
	*life
	group   string
	servers []*url.URL
	best    atomic.Int64 // place of the one that answered last
	http    *http.Client
	agent   string
	logger  *slog.Logger
	silence time.Duration // without a word, after which a stream counts as dead
}

func newHTTP(ctx context.Context, opts Options, where place) *overHTTP {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &overHTTP{
		life: newLife(ctx), group: opts.Group, servers: where.servers, logger: opts.Logger,
		agent: "journald-client/" + opts.Instance, silence: silence,
		http: &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: where.tls, Protocols: &protocols,
			DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		}},
	}
}

// Group implements [Client].
func (c *overHTTP) Group() string { return c.group }

// Close implements [Client].
func (c *overHTTP) Close() error {
	err := c.close()
	c.http.CloseIdleConnections()
	return err
}

// Append implements [Client].
func (c *overHTTP) Append(ctx context.Context, events ...journal.Event) ([]Ack, error) {
	if len(events) == 0 {
		return nil, nil
	}
	err := check(c.group, events)
	var acks []Ack
	if err == nil {
		acks, err = c.append(ctx, events)
	}
	if err != nil {
		return nil, fmt.Errorf("append to the journal: %w", err)
	}
	return acks, nil
}

func (c *overHTTP) append(ctx context.Context, events []journal.Event) ([]Ack, error) {
	body, err := encode(events)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var acks, stored []api.Ack
	err = c.ask(ctx, appendTimeout, func(ctx context.Context, server *url.URL, patience time.Duration) error {
		target := server.String() + "/v1/events?wait=applied&timeout=" + max(patience/2, time.Millisecond).Round(time.Millisecond).String()
		err := c.send(ctx, http.MethodPost, target, body, &acks)
		if r, ok := errors.AsType[*refusal](err); ok && len(r.problem.Events) == len(events) && stored == nil {
			stored = r.problem.Events
		}
		return err
	})
	switch {
	case err != nil && stored != nil:
		return nil, fmt.Errorf("the events are stored, from record %d on, but what that did is not known: %w", stored[0].Sequence, err)
	case err != nil:
		return nil, err
	case len(acks) != len(events):
		return nil, fmt.Errorf("%d acknowledgements came for %d events", len(acks), len(events))
	}
	return acksOf(acks, stored), nil
}

// encode is a JSON array.
func encode(events []journal.Event) ([]byte, error) {
	body := []byte{'['}
	for i := range events {
		text, err := events[i].Encode()
		if err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
	}
	return append(body, ']'), nil
}

// acksOf are the acknowledgements for the caller. What a journald had stored before it ran out of time is no duplicate only
// because it was asked again.
func acksOf(acks, stored []api.Ack) []Ack {
	out := make([]Ack, len(acks))
	for i, a := range acks {
		out[i] = Ack{Sequence: a.Sequence, Duplicate: a.Duplicate, Verdict: a.Verdict, Reason: a.Reason}
		if len(stored) == len(acks) && stored[i].Sequence == a.Sequence {
			out[i].Duplicate = stored[i].Duplicate
		}
	}
	return out
}

// Renew implements [Client].
func (c *overHTTP) Renew(ctx context.Context, key alive.Key, beat alive.Heartbeat, revision uint64) (uint64, error) {
	newer, err := c.renew(ctx, key, beat, revision)
	if r, ok := errors.AsType[*refusal](err); ok && r.ours && r.problem.Status == http.StatusConflict {
		err = &alive.Conflict{Key: key, Found: r.problem.Found}
	}
	if err != nil {
		return 0, fmt.Errorf("renew the liveness key of %s in %s: %w", key.Candidate, key.Group, err)
	}
	return newer, nil
}

func (c *overHTTP) renew(ctx context.Context, key alive.Key, beat alive.Heartbeat, revision uint64) (uint64, error) {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	body, err := json.Marshal(&api.Heartbeat{Incarnation: beat.Incarnation, Revision: revision, Lease: beat.Lease, Run: beat.Run})
	if err != nil {
		return 0, fmt.Errorf("write it as JSON: %w", err)
	}
	var renewed api.Renewed
	err = c.ask(ctx, renewTimeout, func(ctx context.Context, server *url.URL, _ time.Duration) error {
		return c.send(ctx, http.MethodPut, candidateURL(server, key.Group, key.Candidate)+"/alive", body, &renewed)
	})
	return renewed.Revision, err
}

func candidateURL(server *url.URL, group, candidate string) string {
	return server.String() + "/v1/groups/" + url.PathEscape(group) + "/candidates/" + url.PathEscape(candidate)
}

// ask asks one journald after the other, beginning with the one that answered last, until one gives an answer that the
// others would give too. Each gets its share of the time that ctx leaves, and at most what patience says.
func (c *overHTTP) ask(ctx context.Context, patience time.Duration, try func(context.Context, *url.URL, time.Duration) error) error {
	var errs []error
	first := c.best.Load()
	for n := range len(c.servers) {
		place := (int(first) + n) % len(c.servers)
		share := shareOf(ctx, patience, len(c.servers)-n)
		within, cancel := context.WithTimeout(ctx, share)
		err := try(within, c.servers[place], share)
		cancel()
		if r, ok := errors.AsType[*refusal](err); err == nil || ok && r.general() {
			c.best.Store(int64(place))
			return err
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	c.best.CompareAndSwap(first, first+1)
	if cause := context.Cause(ctx); cause != nil {
		errs = append(errs, cause)
	}
	return errors.Join(errs...)
}

// shareOf is how long one of those may take that are left to be asked.
func shareOf(ctx context.Context, patience time.Duration, left int) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(patience, time.Until(deadline)/time.Duration(left))
	}
	return patience
}

// send sends a request, and reads the answer where it is a success; any other is a [refusal].
func (c *overHTTP) send(ctx context.Context, method, target string, body []byte, into any) error {
	answer, err := c.request(ctx, method, target, body, http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := json.UnmarshalRead(io.LimitReader(answer.Body, maxAnswer), into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", target, err)
	}
	return nil
}

// request sends a request, and hands out the answer where it is a success. The body is to be closed.
func (c *overHTTP) request(ctx context.Context, method, target string, body []byte, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", target, err)
	}
	request.Header = header
	request.Header.Set("User-Agent", c.agent)
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, readRefusal(request.URL.Scheme+"://"+request.URL.Host, answer)
}

// unanswered says why no answer came: where a context ended the request, what ended that.
func unanswered(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
