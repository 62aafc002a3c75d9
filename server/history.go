package server

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/records"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// getHistory folds the group's records anew, which is the only exact answer to who led when: a record alone does not
// say whether it had force.
func (s *Server) getHistory(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r.URL.RawQuery, "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	before, err := sequenceCursor(query)
	if err != nil {
		return err
	}
	leader, err := s.leader(r) // it must be there
	if err != nil {
		return err
	}
	h := newHistorian(leader.Group, leader.Component)
	if err := s.opts.Reader.Each(r.Context(), h.query(), h.add); err != nil {
		return err
	}
	answer(w, http.StatusOK, h.page(before, limit))
	return nil
}

// historian notes how the term of one component changes while its group is folded.
type historian struct {
	group, component string
	view             *view.View
	terms            []api.Term
	open             bool
}

func newHistorian(group, component string) *historian {
	return &historian{group: group, component: component, view: view.New()}
}

func (h *historian) query() records.Query {
	return records.Query{Page: 1000, Subjects: []string{records.Subject(h.group, "", ""), journal.Subject("_", "", "takeover")}}
}

func (h *historian) add(r *journal.Record) bool {
	h.view.Apply(r)
	g := h.view.Group(h.group)
	if g == nil || g.Components[h.component] == nil {
		return true
	}
	t := g.Components[h.component].Term
	if h.open && (t == nil || t.Epoch != h.last().Epoch) {
		h.close(r)
	}
	if t != nil && !h.open {
		h.terms = append(h.terms, api.Term{Epoch: t.Epoch, Candidate: t.Candidate, Session: t.Session, Since: t.Since})
		h.open = true
	}
	if t != nil && t.Confirmed {
		h.confirm(g.Components[h.component])
	}
	return true
}

func (h *historian) last() *api.Term { return &h.terms[len(h.terms)-1] }

func (h *historian) close(r *journal.Record) {
	last := h.last()
	last.Ended, last.EndedBy, last.Reason = h.view.Time(), r.Sequence, "superseded"
	if revoke, ok := r.Event.Data.(*journal.Revoke); ok {
		last.Reason = revoke.Reason
	}
	h.open = false
}

func (h *historian) confirm(c *view.Component) {
	last := h.last()
	if last.ConfirmedAt.IsZero() {
		last.ConfirmedAt = h.view.Time()
	}
	if l := c.Leader(); l != nil && l.Session == last.Session {
		last.Address = l.Address
	}
}

// page is the newest terms, or those before an epoch.
func (h *historian) page(before uint64, limit int) *api.History {
	out := &api.History{Group: h.group, Component: h.component, Terms: []api.Term{}}
	for _, t := range slices.Backward(h.terms) {
		if before > 0 && t.Epoch >= before {
			continue
		}
		if len(out.Terms) == limit {
			out.Next = cursor(strconv.FormatUint(out.Terms[limit-1].Epoch, 10))
			break
		}
		out.Terms = append(out.Terms, t)
	}
	return out
}
