package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/sse"
)

// silence is how long a journald may say nothing, of which a comment comes every 5 s.
const silence = 12 * time.Second

var errSilent = errors.New("the journald has fallen silent")

// Follow implements [Client].
func (c *overHTTP) Follow(ctx context.Context, candidate string, tell func(Standing) error) error {
	within, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	f := &watch{client: c, candidate: candidate, tell: tell}
	for failures, place := 0, int(c.best.Load()); ; place++ {
		server := c.servers[place%len(c.servers)]
		err := f.session(within, server)
		if told, ok := errors.AsType[*tellError](err); ok {
			return told.err
		}
		if within.Err() != nil {
			return context.Cause(within)
		}
		if Final(err) {
			return fmt.Errorf("follow %s in %s: %w", candidate, c.group, err)
		}
		if failures++; f.heard {
			failures = 1
		}
		c.logger.Log(ctx, severity(failures), "where the candidate stands is asked for anew", "candidate", candidate, "group", c.group,
			"server", server.Redacted(), "error", err)
		pause(within, failures)
	}
}

// watch is one call of Follow. All of its fields belong to that call's goroutine.
type watch struct {
	client    *overHTTP
	candidate string
	tell      func(Standing) error
	last      uint64 // sequence that was told last
	told      bool
	heard     bool // the last session told something
}

// tellError is an error of whoever is told.
type tellError struct{ err error }

func (e *tellError) Error() string { return e.err.Error() }

// session reads from one journald, until it goes or says nothing.
func (f *watch) session(ctx context.Context, server *url.URL) error {
	f.heard = false
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(f.client.silence, func() { cancel(errSilent) })
	defer alarm.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if f.told {
		header.Set("Last-Event-ID", strconv.FormatUint(f.last, 10))
	}
	answer, err := f.client.request(ctx, http.MethodGet, candidateURL(server, f.client.group, f.candidate)+"/watch", nil, header)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	events := sse.NewReader(answer.Body, func() { alarm.Reset(f.client.silence) })
	for {
		e, err := events.Next()
		if err != nil {
			return unanswered(ctx, fmt.Errorf("read from %s: %w", server.Redacted(), err))
		}
		if err := f.hear(e); err != nil {
			return err
		}
	}
}

// hear passes on what is newer than what was told before.
func (f *watch) hear(e sse.Event) error {
	if e.Name != "" {
		return nil // of a kind that a newer journald has
	}
	var s Standing
	if err := json.Unmarshal([]byte(e.Data), &s); err != nil {
		return fmt.Errorf("read where the candidate stands: %w", err)
	}
	if s.Candidate != f.candidate {
		return fmt.Errorf("it is said where %q stands, not %q", s.Candidate, f.candidate)
	}
	f.heard = true
	if f.told && s.Sequence <= f.last {
		return nil
	}
	if err := f.tell(s); err != nil {
		return &tellError{err}
	}
	f.last, f.told = s.Sequence, true
	return nil
}
