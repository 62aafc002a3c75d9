package server

import (
	"net/http"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/view"
)

// getLeader answers 200 where a confirmed leader is there, 503 where none is. With ?candidate= it is 200 only where
// that candidate leads and has said that it is ready.
func (s *Server) getLeader(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r.URL.RawQuery, "candidate")
	if err != nil {
		return err
	}
	leader, err := s.leader(r)
	if err != nil {
		return err
	}
	if candidate := query.Get("candidate"); candidate != "" && leader.State == "confirmed" {
		switch {
		case leader.Candidate != candidate:
			leader.State = "other-leader"
		case leader.Ready != "true":
			leader.State = "not-ready"
		}
	}
	status := http.StatusOK
	if leader.State != "confirmed" {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, leader)
	return nil
}

func (s *Server) leader(r *http.Request) (leader *api.Leader, err error) {
	s.opts.Projector.Read(func(v *view.View) {
		g, c, missing := componentOf(v, r)
		if missing != nil {
			err = missing
			return
		}
		leader = &api.Leader{Group: g.Name, Component: c.Name, State: c.Phase(), Ready: readiness(c), Leader: intentOf(c)}
		if t := c.Term; t != nil {
			leader.Epoch, leader.Candidate, leader.Session = t.Epoch, t.Candidate, t.Session
		}
	})
	return leader, err
}

func (s *Server) leaderOptions(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Allow", "GET, HEAD, OPTIONS")
	w.WriteHeader(http.StatusNoContent)
	return nil
}
