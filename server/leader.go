package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// getLeader answers 200 where a confirmed leader is there, 503 where none is, or where its lease has lapsed. With
// ?candidate= it is 200 only where that candidate leads, has said that it is ready, and has not said that it stopped: a
// load balancer sends it traffic.
func (s *Server) getLeader(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r.URL.RawQuery, "candidate")
	if err != nil {
		return err
	}
	if query.Has("candidate") && query.Get("candidate") == "" {
		return badQuery("candidate", "is empty; leave it out to ask who leads, whoever it is")
	}
	leader, err := s.leader(r)
	if err != nil {
		return err
	}
	if query.Has("candidate") && leader.State == "confirmed" {
		leader.State = standingOf(leader, query.Get("candidate"))
	}
	status := http.StatusOK
	if leader.State != "confirmed" {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, leader)
	return nil
}

// standingOf is confirmed where the candidate leads and is ready, else why that is not so.
func standingOf(leader *api.Leader, candidate string) string {
	switch {
	case leader.Candidate != candidate:
		return "other-leader"
	case leader.Released:
		return "released"
	case leader.Ready != "true":
		return "not-ready"
	}
	return "confirmed"
}

func (s *Server) leader(r *http.Request) (leader *api.Leader, err error) {
	s.opts.Projector.ReadLive(func(v *view.View, _ time.Time, live view.Liveness) {
		g, c, missing := componentOf(v, r)
		if missing != nil {
			err = missing
			return
		}
		if leader = leaderOf(g, c); leader.State == "confirmed" && lapsed(g, c, live) {
			leader.State = "lapsed"
		}
	})
	return leader, err
}

// lapsed says whether the holder of a managed term has no lease any more, so that it leads nothing, though nobody is there
// to follow it. An instance that does not act learns it with the alert.
func lapsed(g *view.Group, c *view.Component, live view.Liveness) bool {
	if g.Policy.Election != policy.Managed {
		return false
	}
	_, silent := live.Lapsed[view.Holder{Group: g.Name, Candidate: c.Term.Candidate, Incarnation: c.Term.Incarnation}]
	return silent || slices.ContainsFunc(c.Alerts, func(a view.Alert) bool { return a.Name == "NoLeader" })
}

func leaderOf(g *view.Group, c *view.Component) *api.Leader {
	leader := &api.Leader{Group: g.Name, Component: c.Name, State: c.Phase(), Ready: readiness(c), Leader: intentOf(c)}
	if t := c.Term; t != nil {
		leader.Epoch, leader.Candidate, leader.Session, leader.Released = t.Epoch, t.Candidate, t.Session, t.Released
	}
	if leader.State == "confirmed" && leader.Leader == nil {
		leader.State = "withdrawn"
	}
	return leader
}

func (s *Server) leaderOptions(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Allow", "GET, HEAD, OPTIONS")
	w.WriteHeader(http.StatusNoContent)
	return nil
}
