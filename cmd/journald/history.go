package main

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/internal/api"
)

func newHistory(r *remote) *cobra.Command {
	g := &getter{remote: r}
	c := &cobra.Command{
		Use:               "history GROUP/COMPONENT",
		Short:             "List the terms of a component, newest first",
		Example:           "  journald history flink-prod/restserver",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeComponent(r),
		RunE: func(c *cobra.Command, args []string) error {
			if _, _, err := splitName(args[0]); err != nil {
				return err
			}
			return g.run(c.Context(), "terms", args[0])
		},
	}
	addFormat(c, &g.format)
	c.Flags().IntVar(&g.limit, "limit", 0, "at most so many (default all)")
	return c
}

func (g *getter) terms(ctx context.Context, group, component string) (*listing, error) {
	rows, err := g.rows(ctx, group, component)
	if err != nil {
		return nil, err
	}
	l := &listing{
		columns: []string{"COMPONENT", "EPOCH", "HOLDER", "SINCE", "LASTED", "CONFIRMED", "ENDED BY", "ADDRESS", "SESSION"}, wide: 2,
		nothing: "Nobody ever led.",
	}
	now := time.Now()
	for _, r := range rows {
		terms, err := g.history(ctx, r.Group, r.Component)
		if err != nil {
			return nil, err
		}
		for _, t := range terms {
			l.rows = append(l.rows, termRow(r.Group+"/"+r.Component, &t, now))
		}
	}
	return l, nil
}

// namedTerm is a term that says whose it is.
type namedTerm struct {
	Component string `json:"component"`
	api.Term
}

func termRow(name string, t *api.Term, now time.Time) row {
	end, ended, confirmed := now, "open", "never"
	if !t.Ended.IsZero() {
		end, ended = t.Ended, t.Reason
	}
	if !t.ConfirmedAt.IsZero() {
		confirmed = "after " + span(t.ConfirmedAt.Sub(t.Since))
	}
	epoch := strconv.FormatUint(t.Epoch, 10)
	return row{name + "@" + epoch, []string{
		name, epoch, t.Candidate, t.Since.UTC().Format(time.RFC3339), span(end.Sub(t.Since)), confirmed, ended, dash(t.Address), t.Session,
	}, namedTerm{name, *t}}
}

// history is the terms of a component, as many as are wanted.
func (g *getter) history(ctx context.Context, group, component string) ([]api.Term, error) {
	var all []api.Term
	for next := ""; ; {
		size := 1000
		if g.limit > 0 {
			size = min(size, g.limit-len(all))
		}
		var page api.History
		path := componentPath(group, component) + "/history?limit=" + strconv.Itoa(size) + "&cursor=" + url.QueryEscape(next)
		if err := g.get(ctx, path, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Terms...)
		if next = page.Next; next == "" || g.limit > 0 && len(all) >= g.limit {
			return all, nil
		}
	}
}
