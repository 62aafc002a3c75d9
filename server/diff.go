package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/compare"
)

const (
	mostDiffs  = 2 // comparisons at one time; others wait for their turn
	mostLooks  = 8 // targets that one of them reads at one time
	settleTime = time.Second
)

// getDiff reads every target of some groups and compares it with the view.
func (s *Server) getDiff(w http.ResponseWriter, r *http.Request) error {
	scope, timeout, err := readScope(r.URL.RawQuery)
	if err != nil {
		return err
	}
	extend(w, timeout+writeTimeout)
	ctx, cancel := context.WithTimeoutCause(r.Context(), timeout, fmt.Errorf("it was not read within %s", timeout))
	defer cancel()
	ctx, stop := mergeDone(ctx, s.streams)
	defer stop()
	select {
	case s.diffs <- struct{}{}:
		defer func() { <-s.diffs }()
	case <-ctx.Done():
		refusal := refuse(http.StatusServiceUnavailable, "busy", "targets are being compared for others; try again")
		refusal.retryAfter = time.Second
		return refusal
	}
	page, err := s.diff(ctx, scope)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, page)
	return nil
}

// scope is what is to be compared.
type scope struct {
	group, component string // empty: all
	after            string // with all groups: those after this one
	limit            int
}

func readScope(raw string) (sc scope, timeout time.Duration, err error) {
	query, err := parseQuery(raw, "group", "component", "timeout", "limit", "cursor")
	if err != nil {
		return sc, 0, err
	}
	sc.group, sc.component = query.Get("group"), query.Get("component")
	if sc.component != "" && sc.group == "" {
		return sc, 0, badQuery("component", "needs a group, since components are named within one")
	}
	if sc.limit, err = limitOf(query); err != nil {
		return sc, 0, err
	}
	if sc.after, err = readCursor(query); err != nil {
		return sc, 0, err
	}
	timeout, err = timeoutOf(query)
	return sc, timeout, err
}

// diff reads once, and once more what differs: a change that was under way is none any more by then.
func (s *Server) diff(ctx context.Context, sc scope) (*api.Diff, error) {
	page := &api.Diff{}
	subjects, err := s.subjects(sc, page)
	if err != nil {
		return nil, err
	}
	rows := s.compare(ctx, subjects, page)
	if again := differing(rows); len(again) > 0 {
		s.settle(ctx, again, reached(rows))
		rows = replace(rows, s.compare(ctx, again, page))
	}
	slices.SortStableFunc(rows, func(a, b api.DiffRow) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Component, b.Component))
	})
	page.Rows = rows
	return page, nil
}

// subject is a target of a group, and the components that it is read for.
type subject struct {
	group, target string // target: empty for the built-in bucket
	components    []string
}

// subjects are every target of the groups in question, those of a group in their order, the built-in bucket last.
func (s *Server) subjects(sc scope, page *api.Diff) (all []subject, err error) {
	s.opts.Projector.Read(func(v *view.View) {
		names := []string{sc.group}
		if sc.group == "" {
			names, page.Next = groupsAfter(v, sc.after, sc.limit)
		}
		for _, name := range names {
			var components []string
			if components, err = componentsOf(v, name, sc.component); err != nil {
				return
			}
			all = append(all, s.subjectsOf(v.Group(name), components)...)
		}
	})
	return all, err
}

func componentsOf(v *view.View, group, component string) ([]string, error) {
	g := v.Group(group)
	if g == nil {
		return nil, noGroup()
	}
	if component == "" {
		return slices.Sorted(maps.Keys(g.Components)), nil
	}
	if g.Components[component] == nil {
		return nil, noComponent(g)
	}
	return []string{component}, nil
}

func (s *Server) subjectsOf(g *view.Group, components []string) []subject {
	var all []subject
	for i := range g.Targets {
		spec := &g.Targets[i]
		shown := slices.DeleteFunc(slices.Clone(components), func(name string) bool { return !spec.Shows(name) })
		if len(shown) > 0 {
			all = append(all, subject{g.Name, spec.Name, shown})
		}
	}
	if s.opts.Projector.HasBuiltIn() && len(components) > 0 {
		all = append(all, subject{g.Name, "", components})
	}
	return all
}

// compare reads targets, and then compares each with the view as it is by then: it may be newer than what was read,
// but not older.
func (s *Server) compare(ctx context.Context, subjects []subject, page *api.Diff) []api.DiffRow {
	readings := make([][]projector.Reading, len(subjects))
	places := make(chan struct{}, mostLooks)
	var all sync.WaitGroup
	for i, one := range subjects {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			readings[i] = s.opts.Projector.Look(ctx, one.group, one.target, one.components)
		})
	}
	all.Wait()
	var rows []api.DiffRow
	s.opts.Projector.Read(func(v *view.View) {
		page.Sequence = v.Sequence()
		for i, one := range subjects {
			for _, r := range readings[i] {
				if row, ok := diffRow(v, &one, &r); ok {
					rows = append(rows, row)
				}
			}
		}
	})
	return rows
}

// differing are those of the rows that differ, as subjects to be read again.
func differing(rows []api.DiffRow) []subject {
	var again []subject
	for i := range rows {
		if rows[i].State != compare.Differs {
			continue
		}
		one := subject{rows[i].Group, rows[i].Target, []string{rows[i].Component}}
		if rows[i].Kind == api.BuiltIn {
			one.target = ""
		}
		if n := len(again) - 1; n >= 0 && again[n].group == one.group && again[n].target == one.target {
			again[n].components = append(again[n].components, rows[i].Component)
		} else {
			again = append(again, one)
		}
	}
	return again
}

// reached is the highest sequence that was seen in a target.
func reached(rows []api.DiffRow) (highest uint64) {
	for i := range rows {
		if rows[i].Shows != nil {
			highest = max(highest, rows[i].Shows.Sequence)
		}
	}
	return highest
}

// settle waits for pushes that are under way, and for the view to know of what was pushed, a second at most.
func (s *Server) settle(ctx context.Context, again []subject, reached uint64) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		changed := s.opts.Projector.Changed()
		moving := false
		s.opts.Projector.Read(func(v *view.View) {
			moving = v.Sequence() < reached || slices.ContainsFunc(again, func(one subject) bool { return one.moving(v) })
		})
		if !moving {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// moving says whether a push may be under way that has not failed yet. Of the built-in bucket nobody knows.
func (one *subject) moving(v *view.View) bool {
	g := v.Group(one.group)
	return one.target == "" || slices.ContainsFunc(one.components, func(name string) bool {
		c := g.Components[name]
		if c == nil || c.Targets[one.target] == nil {
			return false
		}
		t := c.Targets[one.target]
		return t.Due && (t.Error == "" || t.Attempts == 0)
	})
}

// replace puts what was found the second time in the place of what differed, save where nothing could be read.
func replace(rows, again []api.DiffRow) []api.DiffRow {
	type key struct{ group, component, target, kind string }
	of := func(r *api.DiffRow) key { return key{r.Group, r.Component, r.Target, r.Kind} }
	second := map[key]*api.DiffRow{}
	for i := range again {
		second[of(&again[i])] = &again[i]
	}
	for i := range rows {
		if r := second[of(&rows[i])]; r != nil && r.State != api.Unreachable {
			rows[i] = *r
		}
	}
	return rows
}
