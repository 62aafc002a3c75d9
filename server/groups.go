package server

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/compare"
)

func (s *Server) getGroups(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r.URL.RawQuery, "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	after, err := readCursor(query)
	if err != nil {
		return err
	}
	page := s.groupRows(after, limit)
	answer(w, http.StatusOK, &page)
	return nil
}

// groupRows are the groups whose names come after one.
func (s *Server) groupRows(after string, limit int) api.Groups {
	page := api.Groups{Groups: []api.GroupRow{}}
	s.opts.Projector.ReadLive(func(v *view.View, now time.Time, _ view.Liveness) {
		page.Sequence = v.Sequence()
		var names []string
		names, page.Next = groupsAfter(v, after, limit)
		for _, name := range names {
			page.Groups = append(page.Groups, groupRow(v.Group(name), now))
		}
	})
	return page
}

// groupsAfter are the names of a page of groups, and the cursor of the next one.
func groupsAfter(v *view.View, after string, limit int) (names []string, next string) {
	names = slices.Sorted(maps.Keys(v.Groups()))
	first, found := slices.BinarySearch(names, after)
	if found {
		first++
	}
	names = names[first:]
	if len(names) > limit {
		names = names[:limit]
		next = cursor(names[limit-1])
	}
	return names, next
}

func groupRow(g *view.Group, now time.Time) api.GroupRow {
	row := api.GroupRow{
		Name: g.Name, Version: g.Version, Paused: g.Paused, PausedTill: g.PausedTill, Alerts: slices.Clone(g.Alerts),
		Candidates: candidateRows(g, slices.Collect(maps.Keys(g.Candidates)), now), Components: []api.Row{},
	}
	for _, name := range slices.Sorted(maps.Keys(g.Components)) {
		row.Components = append(row.Components, componentRow(g, g.Components[name]))
	}
	return row
}

func componentRow(g *view.Group, c *view.Component) api.Row {
	row := api.Row{Group: g.Name, Component: c.Name, Phase: c.Phase(), Leader: intentOf(c), Alerts: slices.Clone(c.Alerts)}
	if t := c.Term; t != nil {
		row.Epoch, row.Candidate, row.Session, row.Since, row.Ready = t.Epoch, t.Candidate, t.Session, t.Since, readiness(c)
		if row.Released = t.Released; t.Yield != nil {
			yield := *t.Yield // what the view hands out changes with the next record
			row.Yield = &yield
		}
	}
	row.Targets = targetsOf(g, c)
	return row
}

// targetsOf says how far the targets are of which something is known.
func targetsOf(g *view.Group, c *view.Component) (all []api.TargetState) {
	for _, spec := range g.Targets {
		if t := c.Targets[spec.Name]; t != nil && spec.Shows(c.Name) {
			all = append(all, api.TargetState{Name: spec.Name, State: stateOf(g, &spec, t), Error: t.Error})
		}
	}
	return all
}

// stateOf is how far a target is, in a word.
func stateOf(g *view.Group, spec *journal.Target, t *view.Target) string {
	if !g.Keeps(spec) {
		return compare.Observed
	}
	return cmp.Or(t.State, view.Pending)
}

func intentOf(c *view.Component) *api.Intent {
	if c.Leader() == nil {
		return nil
	}
	l := c.Leader()
	return &api.Intent{
		Sequence: c.Intent.Sequence, Epoch: c.Intent.Epoch, Session: l.Session, Candidate: l.Candidate, Address: l.Address,
		Properties: maps.Clone(l.Properties),
	}
}

func readiness(c *view.Component) string {
	if c.Term == nil {
		return "unknown"
	}
	return cmp.Or(c.Term.Ready, "unknown")
}

func (s *Server) getGroup(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r.URL.RawQuery); err != nil {
		return err
	}
	return s.answerFromView(w, func(v *view.View, _ time.Time, _ view.Liveness) (any, error) {
		g, err := groupOf(v, r)
		if err != nil {
			return nil, err
		}
		return &api.Group{Sequence: v.Sequence(), Group: *g}, nil
	})
}

func (s *Server) getComponent(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r.URL.RawQuery); err != nil {
		return err
	}
	return s.answerFromView(w, func(v *view.View, now time.Time, live view.Liveness) (any, error) {
		g, c, err := componentOf(v, r)
		if err != nil {
			return nil, err
		}
		out := &api.Component{
			Sequence: v.Sequence(), Group: g.Name, Phase: c.Phase(), Ready: readiness(c), Component: *c,
			Paused: g.Paused, PausedTill: g.PausedTill, GroupAlerts: g.Alerts, Chances: g.Chances(c, now, live),
		}
		var names []string
		for _, one := range out.Chances {
			names = append(names, one.Candidate)
		}
		out.Candidates = candidateRows(g, names, now)
		for _, spec := range g.Targets {
			if !spec.Shows(c.Name) {
				continue
			}
			out.TargetSpecs = append(out.TargetSpecs, spec)
			if !g.Keeps(&spec) {
				out.Observed = append(out.Observed, spec.Name)
			}
		}
		return out, nil
	})
}

// answerFromView encodes within the read, since what a view hands out changes with the next record.
func (s *Server) answerFromView(w http.ResponseWriter, find func(*view.View, time.Time, view.Liveness) (any, error)) error {
	var text jsontext.Value
	var err error
	s.opts.Projector.ReadLive(func(v *view.View, now time.Time, live view.Liveness) {
		var found any
		if found, err = find(v, now, live); err == nil {
			text, err = json.Marshal(found, json.Deterministic(true))
		}
	})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, text)
	return nil
}

func groupOf(v *view.View, r *http.Request) (*view.Group, error) {
	g := v.Group(r.PathValue("group"))
	if g == nil {
		return nil, noGroup()
	}
	return g, nil
}

func noGroup() *refusal {
	return refuse(http.StatusNotFound, "no-group", "the journal never spoke of a group of this name; /v1/groups lists those it knows")
}

func noComponent(g *view.Group) *refusal {
	return refuse(http.StatusNotFound, "no-component", "the group has no component of this name; /v1/groups/"+g.Name+" lists those it has")
}

func componentOf(v *view.View, r *http.Request) (*view.Group, *view.Component, error) {
	g, err := groupOf(v, r)
	if err != nil {
		return nil, nil, err
	}
	c := g.Components[r.PathValue("component")]
	if c == nil {
		return nil, nil, noComponent(g)
	}
	return g, c, nil
}
