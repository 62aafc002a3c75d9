package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/standing"
)

const (
	followBeat = 5 * time.Second  // a comment, so that a candidate finds a dead connection
	catchUp    = 10 * time.Second // for the fold to reach what a candidate was told by another journald
)

// getCandidate answers where a candidate stands. One that nobody spoke of stands outside.
func (s *Server) getCandidate(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r.URL.RawQuery); err != nil {
		return err
	}
	if err := checkCandidate(r); err != nil {
		return err
	}
	now := s.standing(r.PathValue("group"), r.PathValue("candidate"))
	answer(w, http.StatusOK, &now)
	return nil
}

// watchCandidate streams where a candidate stands, at once and after every change, as server-sent events whose id is the
// sequence. Who comes back with the last id is told nothing older.
func (s *Server) watchCandidate(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r.URL.RawQuery); err != nil {
		return err
	}
	if err := checkCandidate(r); err != nil {
		return err
	}
	last, err := lastEventID(r)
	if err != nil {
		return err
	}
	leave, err := enter(s.followers)
	if err != nil {
		return err
	}
	defer leave()
	ctx, stop := mergeDone(r.Context(), s.streams)
	defer stop()
	if err := s.reach(ctx, last); err != nil {
		return err
	}
	return s.follow(ctx, w, r.PathValue("group"), r.PathValue("candidate"))
}

// checkCandidate refuses names that no event can have.
func checkCandidate(r *http.Request) error {
	event := journal.Event{
		ID: "watch", Source: "service/http", Group: r.PathValue("group"),
		Data: &journal.Leave{Candidate: r.PathValue("candidate"), Incarnation: "any"},
	}
	if err := flat(event.Validate()); err != nil {
		refusal := invalid(indexed{-1, err})
		refusal.code, refusal.Type = "invalid-name", api.ProblemPrefix+"invalid-name"
		return refusal
	}
	return nil
}

// reach waits until this instance has folded as much as another one had.
func (s *Server) reach(ctx context.Context, sequence uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.catchUp)
	defer cancel()
	err := s.opts.Projector.Wait(ctx, sequence)
	if errors.Is(err, context.DeadlineExceeded) {
		r := refuse(http.StatusServiceUnavailable, "behind", fmt.Sprintf("this journald has folded up to record %d, and you were told of %d; "+
			"where it does not catch up, the journal was reset or restored, and who was told of more has to be started anew",
			s.opts.Projector.Status().Applied, sequence))
		r.retryAfter, r.cause = time.Second, err
		return r
	}
	return err
}

// follow writes until the candidate goes, or the server stops.
func (s *Server) follow(ctx context.Context, w http.ResponseWriter, group, candidate string) error {
	var l *listener
	var told standing.Candidate
	s.opts.Projector.Read(func(v *view.View) {
		l, told = s.hub.listen(v, group, candidate), standing.Of(v, group, candidate)
	})
	defer s.hub.leave(l)
	out := newEventStream(w)
	if out.standing(told) != nil {
		return nil // the candidate has gone
	}
	beat := time.NewTicker(followBeat)
	defer beat.Stop()
	for {
		select {
		case <-l.woken:
			now := s.standing(group, candidate)
			if standing.Same(now, told) {
				continue
			}
			if told = now; out.standing(now) != nil {
				return nil
			}
		case <-beat.C:
			if out.say(": still here\n\n") != nil {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Server) standing(group, candidate string) (now standing.Candidate) {
	s.opts.Projector.Read(func(v *view.View) { now = standing.Of(v, group, candidate) })
	return now
}

// standing writes one event.
func (e *eventStream) standing(now standing.Candidate) error {
	text, err := json.Marshal(&now, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write a standing as JSON: %w", err)
	}
	return e.say("id: " + strconv.FormatUint(now.Sequence, 10) + "\ndata: " + string(text) + "\n\n")
}
