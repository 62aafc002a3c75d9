package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// advise says what to do about an order that would be refused. An order about a candidate that nobody ever heard of is
// refused here, where a person sends it; a program that excludes in advance appends the event.
func (s *Server) advise(e *journal.Event, r *api.Rehearsal) {
	s.opts.Projector.Read(func(v *view.View) {
		g := v.Group(e.Group)
		switch d := e.Data.(type) {
		case *journal.Transfer:
			if r.Verdict == view.Invalid {
				r.Advice = transferAdvice(g, g.Components[e.Component].Term, d.To, r.Prospects)
			}
		case *journal.Exclude:
			stranger(g, d.Candidate, r)
		case *journal.Include:
			stranger(g, d.Candidate, r)
		}
	})
}

// stranger has an order refused whose candidate the group does not know.
func stranger(g *view.Group, candidate string, r *api.Rehearsal) {
	if g.Candidates[candidate] != nil {
		return
	}
	r.Verdict, r.Decided, r.Prospects = view.Invalid, []api.Decided{}, nil
	r.Reason = "group " + g.Name + " has never heard of " + strconv.Quote(candidate)
	r.Advice = "POST /v1/events takes an " + r.Kind + " of somebody unknown" + nearest.Hint(candidate, slices.Sorted(maps.Keys(g.Candidates)))
}

func transferAdvice(g *view.Group, t *view.Term, to string, prospects []view.Prospect) string {
	switch {
	case g.Paused:
		return "resume the group first"
	case t == nil:
		return "it can be handed over once somebody holds the term"
	case t.Yield != nil:
		return fmt.Sprintf("record %d told %s to yield to %s; wait until it has let go", t.Yield.Sequence, t.Candidate, t.Yield.To)
	case to == t.Candidate:
		return "name another candidate, or none for the best one"
	}
	var names, all []string
	for _, p := range prospects {
		for _, c := range p.Chances {
			names = append(names, c.Candidate)
			all = append(all, c.Candidate+": "+obstacleWords(c.Obstacles))
			if c.Candidate == to {
				return "what keeps it: " + obstacleWords(c.Obstacles)
			}
		}
	}
	if to == "" {
		return "what keeps each of them: " + strings.Join(all, "; ") + "; to and force hand over all the same"
	}
	return "those that may lead it: " + list(names) + nearest.Hint(to, names)
}

// obstacleWords is what keeps a candidate from taking over, for a person to read.
func obstacleWords(all []view.Obstacle) string {
	var words []string
	for _, o := range all {
		words = append(words, o.String())
	}
	return strings.Join(words, ", ")
}
