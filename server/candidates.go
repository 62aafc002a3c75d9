package server

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/view"
)

// candidateRows are those of some of a group's candidates, by name, at now by the log's clock.
func candidateRows(g *view.Group, names []string, now time.Time) []api.CandidateRow {
	stopping := stoppingIn(g, now)
	rows := make([]api.CandidateRow, 0, len(names))
	for _, name := range slices.Sorted(slices.Values(names)) {
		row := candidateRow(g, g.Candidates[name], now)
		row.Stopping = stopping[name]
		rows = append(rows, row)
	}
	return rows
}

// stoppingIn are the components that each candidate led, and has not said that it stopped to.
func stoppingIn(g *view.Group, now time.Time) map[string][]string {
	all := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(g.Components)) {
		c := g.Components[name]
		if c.Handover == nil {
			continue
		}
		for _, s := range c.Handover.Stopping {
			k := g.Candidates[s.Candidate]
			if k != nil && g.StoppingUntil(c, k).After(now) && !slices.Contains(all[k.Name], name) {
				all[k.Name] = append(all[k.Name], name)
			}
		}
	}
	return all
}

func candidateRow(g *view.Group, k *view.Candidate, now time.Time) api.CandidateRow {
	row := api.CandidateRow{
		Group: g.Name, Name: k.Name, Incarnation: k.Incarnation, Joined: k.Joined != 0, Health: cmp.Or(k.Rank, "unknown"),
		Priority: k.Priority, Excluded: k.Excluded, ExcludedUntil: k.ExcludedUntil, Components: k.Components, Address: k.Address,
		LastRun: k.Reported,
	}
	for _, c := range g.LedBy(k.Name) {
		if row.Leads = append(row.Leads, c.Name); c.Term.Yield != nil {
			row.Yields = append(row.Yields, c.Name)
		}
	}
	slices.Sort(row.Leads)
	slices.Sort(row.Yields)
	row.HeldDownUntil, row.HeldDown = g.HeldDownAt(k, now)
	if name, worst := k.WorstCheck(); worst != nil {
		row.Check, row.Failures, row.Reason = name, worst.Fails, worst.Reason
	}
	if k.Silent != nil {
		row.SilentSince = k.Silent.Since
	}
	return row
}
