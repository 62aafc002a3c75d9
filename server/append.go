package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// What an append may wait for.
const (
	waitNot       = ""
	waitApplied   = "applied"
	waitPublished = "published"
)

const (
	defaultWait = 10 * time.Second
	longestWait = 5 * time.Minute
)

// appendTimeout is how long a request waits for a journal that can't be reached: longer than a cluster takes to elect,
// and no longer, so that whoever asks hears of an outage.
const appendTimeout = 10 * time.Second

// postEvents stores events, all or none, and answers when they are on disk.
func (s *Server) postEvents(w http.ResponseWriter, r *http.Request) error {
	wait, timeout, err := waitOf(r.URL.RawQuery)
	if err != nil {
		return err
	}
	in, err := readInput(w, r, s.now())
	if err != nil {
		return err
	}
	acks, err := s.append(r.Context(), in)
	if err != nil {
		return err
	}
	if wait != waitNot {
		extend(w, timeout+writeTimeout)
		if err := s.await(r.Context(), wait, timeout, in.events, acks); err != nil {
			return err
		}
	}
	if in.batch {
		answer(w, http.StatusCreated, acks)
	} else {
		answer(w, http.StatusCreated, &acks[0])
	}
	return nil
}

func waitOf(raw string) (wait string, timeout time.Duration, err error) {
	if raw == "" {
		return waitNot, 0, nil
	}
	query, err := parseQuery(raw, "wait", "timeout")
	if err != nil {
		return "", 0, err
	}
	if wait = query.Get("wait"); wait != waitNot && wait != waitApplied && wait != waitPublished {
		return "", 0, badQuery("wait", "is neither applied nor published")
	}
	timeout, err = timeoutOf(query)
	return wait, timeout, err
}

func (s *Server) append(ctx context.Context, in *input) ([]api.Ack, error) {
	if err := s.sampler.admit(in); err != nil {
		return nil, err
	}
	if err := s.groups.admit(in.events, s.now()); err != nil {
		return nil, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	stored, err := s.opts.Log.Append(ctx, in.events...)
	if err != nil {
		return nil, err
	}
	s.opts.Metrics.appended(time.Since(began))
	acks := make([]api.Ack, len(stored))
	for i, a := range stored {
		acks[i] = api.Ack{Sequence: a.Sequence, ID: in.events[i].ID, Duplicate: a.Duplicate}
	}
	return acks, nil
}

// extend lets an answer take longer than others. Where the connection has no deadline there is none to move.
func extend(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// await waits for what the request asked for, and puts it into the acks.
func (s *Server) await(ctx context.Context, wait string, timeout time.Duration, events []journal.Event, acks []api.Ack) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, stop := mergeDone(ctx, s.streams)
	defer stop()
	err := s.awaitApplied(ctx, acks)
	if err == nil && wait == waitPublished {
		err = s.awaitPublished(ctx, events, acks)
	}
	if err == nil {
		return nil
	}
	return unfinished(err, acks, "the events are stored, but they were not "+wait+" within "+timeout.String(),
		"the events are stored, but this journald stops; ask another one whether they were "+wait)
}

// unfinished answers where what is stored could not be waited for: late where the time was up, else stopping.
func unfinished(err error, acks []api.Ack, late, stopping string) *refusal {
	r := refuse(http.StatusGatewayTimeout, "timeout", late)
	if !errors.Is(err, context.DeadlineExceeded) {
		r = refuse(http.StatusServiceUnavailable, "stopping", stopping)
	}
	r.Events, r.cause = acks, err
	return r
}

// mergeDone is a context that ends with either.
func mergeDone(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() { stop(); cancel() }
}

func (s *Server) awaitApplied(ctx context.Context, acks []api.Ack) error {
	for i := range acks {
		if err := s.opts.Projector.Wait(ctx, acks[i].Sequence); err != nil {
			return err
		}
		acks[i].Verdict, acks[i].Reason, _ = s.opts.Projector.Verdict(acks[i].Sequence)
	}
	return nil
}

// awaitPublished waits until every target shows the components that the events are about, as they are by then.
func (s *Server) awaitPublished(ctx context.Context, events []journal.Event, acks []api.Ack) error {
	for {
		changed := s.opts.Projector.Changed()
		missing := false
		s.opts.Projector.Read(func(v *view.View) {
			for i := range events {
				acks[i].Published = published(v, &events[i])
				missing = missing || !acks[i].Published && effective(acks[i].Verdict)
			}
		})
		if !missing {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// effective says whether there is anything to be published of an event with this verdict.
func effective(v view.Verdict) bool { return v == view.Applied || v == view.Duplicate }

// published says whether every target that is written shows the component's intent.
func published(v *view.View, e *journal.Event) bool {
	g := v.Group(e.Group)
	if g == nil || e.Component == "" {
		return true
	}
	c := g.Components[e.Component]
	if c == nil || c.Intent == nil {
		return true
	}
	for i := range g.Targets {
		spec := &g.Targets[i]
		if !g.Keeps(spec) || !spec.Shows(c.Name) {
			continue
		}
		t := c.Targets[spec.Name]
		if t == nil || t.State != view.InSync || !spec.Guarded && t.Pushed < c.Intent.Sequence {
			return false
		}
	}
	return true
}

// parseQuery reads a query and refuses parameters that are not known.
func parseQuery(raw string, known ...string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "bad-query", "the query can't be read: it is not percent-encoded")
	}
	for name, values := range query {
		if err := knownParameter(name, len(values), known); err != nil {
			return nil, err
		}
	}
	return query, nil
}
