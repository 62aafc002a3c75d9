package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/view"
)

// getter is one use of `journald get`.
type getter struct {
	*remote
	format string
	follow bool
	from   string
	to     string
	kind   string
	limit  int
}

func nouns() []string { return []string{"leaders", "groups", "candidates", "terms", "events"} }

func newGet(r *remote) *cobra.Command {
	g := &getter{remote: r}
	c := &cobra.Command{
		Use:   "get leaders|groups|candidates|terms|events [GROUP[/COMPONENT]]",
		Short: "List what the journal knows",
		Example: "  journald get leaders\n  journald get leaders flink-prod -o wide -w\n" +
			"  journald get terms flink-prod/restserver\n  journald get events flink-prod --from -15m -o jsonl",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeGet(r),
		RunE: func(c *cobra.Command, args []string) error {
			name := ""
			if len(args) == 2 {
				name = args[1]
			}
			return g.run(c.Context(), args[0], name)
		},
	}
	addFormat(c, &g.format)
	c.Flags().BoolVarP(&g.follow, "watch", "w", false, "go on with what changes, until interrupted")
	c.Flags().StringVar(&g.from, "from", "", "events: from here on, RFC 3339, -15m or seq:N")
	c.Flags().StringVar(&g.to, "to", "", "events: up to here, inclusive")
	c.Flags().StringVar(&g.kind, "kind", "", "events: of this kind only")
	c.Flags().IntVar(&g.limit, "limit", 0, "events, terms: at most so many (default all)")
	return c
}

func (g *getter) run(ctx context.Context, noun, name string) error {
	out, err := newPrinter(g.out, g.format)
	if err != nil {
		return err
	}
	group, component, _ := strings.Cut(name, "/")
	if noun == "events" {
		return g.events(ctx, out, group, component)
	}
	lists := map[string]func(context.Context, string, string) (*listing, error){
		"leaders": g.leaders, "groups": g.groupList, "candidates": g.candidates, "terms": g.terms,
	}
	list, known := lists[noun]
	if !known {
		return usage(fmt.Errorf("%q is none of %s", noun, strings.Join(nouns(), ", ")))
	}
	l, err := list(ctx, group, component)
	if err != nil {
		return err
	}
	if err := out.print(l); err != nil {
		return err
	}
	if g.follow {
		return g.watch(ctx, out, group, l, func() (*listing, error) { return list(ctx, group, component) })
	}
	if len(l.rows) == 0 {
		fmt.Fprintln(g.err, l.nothing)
	}
	return nil
}

// groups are those of the server, or the one that is named.
func (g *getter) groups(ctx context.Context, name string) ([]api.GroupRow, error) {
	var all []api.GroupRow
	for next := ""; ; {
		var page api.Groups
		if err := g.get(ctx, "/v1/groups?limit=500&cursor="+url.QueryEscape(next), &page); err != nil {
			return nil, err
		}
		for _, one := range page.Groups {
			if name == "" || one.Name == name {
				all = append(all, one)
			}
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if name != "" && len(all) == 0 {
		return nil, no(fmt.Errorf("the journal knows no group %q; `journald get groups` lists those it knows", name))
	}
	return all, nil
}

// rows are the components that are meant.
func (g *getter) rows(ctx context.Context, group, component string) ([]api.Row, error) {
	groups, err := g.groups(ctx, group)
	if err != nil {
		return nil, err
	}
	var all []api.Row
	for _, one := range groups {
		for _, r := range one.Components {
			if component == "" || r.Component == component {
				all = append(all, r)
			}
		}
	}
	if component != "" && len(all) == 0 {
		return nil, no(fmt.Errorf("group %s has no component %q; `journald get leaders %s` lists those it has", group, component, group))
	}
	return all, nil
}

func (g *getter) leaders(ctx context.Context, group, component string) (*listing, error) {
	rows, err := g.rows(ctx, group, component)
	if err != nil {
		return nil, err
	}
	l := &listing{
		columns: []string{"COMPONENT", "STATE", "HOLDER", "ADDRESS", "EPOCH", "AGE", "ALERTS", "SESSION", "READY", "TARGETS", "YIELD"}, wide: 4,
		nothing: "No component is known yet; `journald publish grant GROUP/COMPONENT candidate=... session=...` makes one known.",
	}
	now := time.Now()
	for _, r := range rows {
		address, epoch := "", ""
		if r.Leader != nil {
			address = r.Leader.Address
		}
		if r.Epoch > 0 {
			epoch = strconv.FormatUint(r.Epoch, 10)
		}
		name := r.Group + "/" + r.Component
		l.rows = append(l.rows, row{name, []string{
			name, r.Phase, dash(r.Candidate), dash(address), dash(epoch), age(r.Since, now), dash(alertWords(r.Alerts, g.format == "wide")),
			dash(r.Session), dash(r.Ready), dash(targetWords(r.Targets)), dash(yieldWords(&r)),
		}, r})
	}
	return l, nil
}

// alertWords are the names of alerts, with their reasons where there is room.
func alertWords(alerts []view.Alert, reasons bool) string {
	var words []string
	for _, a := range alerts {
		if reasons {
			words = append(words, a.String())
		} else {
			words = append(words, a.Name)
		}
	}
	if reasons {
		return strings.Join(words, "; ")
	}
	return strings.Join(words, ",")
}

// yieldWords is how far a holder is that was told to give leadership up.
func yieldWords(r *api.Row) string {
	switch {
	case r.Released:
		return "released"
	case r.Yield != nil:
		return strings.TrimSpace("to " + r.Yield.To)
	}
	return ""
}

func targetWords(targets []api.TargetState) string {
	var words []string
	for _, t := range targets {
		words = append(words, t.Name+"="+t.State)
	}
	return strings.Join(words, ",")
}

func (g *getter) groupList(ctx context.Context, group, _ string) (*listing, error) {
	groups, err := g.groups(ctx, group)
	if err != nil {
		return nil, err
	}
	l := &listing{
		columns: []string{"GROUP", "COMPONENTS", "CONFIRMED", "CANDIDATES", "PAUSED", "ALERTS", "VERSION"}, wide: 1,
		nothing: "No group is known yet; the first event makes one known.",
	}
	for _, one := range groups {
		confirmed, alerts := 0, len(one.Alerts)
		for _, c := range one.Components {
			alerts += len(c.Alerts)
			if c.Phase == "confirmed" {
				confirmed++
			}
		}
		l.rows = append(l.rows, row{one.Name, []string{
			one.Name, strconv.Itoa(len(one.Components)), strconv.Itoa(confirmed), strconv.Itoa(len(one.Candidates)),
			yesNo(one.Paused), strconv.Itoa(alerts), strconv.FormatUint(one.Version, 10),
		}, one})
	}
	return l, nil
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func (g *getter) candidates(ctx context.Context, group, component string) (*listing, error) {
	groups, err := g.groups(ctx, group)
	if err != nil {
		return nil, err
	}
	l := &listing{
		columns: []string{"GROUP", "CANDIDATE", "JOINED", "HEALTH", "LEADS", "COMPONENTS", "REMARKS", "LAST RUN", "PRIORITY",
			"INCARNATION", "ADDRESS"},
		wide:    4,
		nothing: "No candidate has joined.",
	}
	for _, one := range groups {
		for _, k := range one.Candidates {
			if component != "" && !slices.Contains(k.Components, component) && !slices.Contains(k.Leads, component) {
				continue
			}
			l.rows = append(l.rows, row{one.Name + "/" + k.Name, []string{
				one.Name, k.Name, yesNo(k.Joined), k.Condition(), dash(strings.Join(k.Leads, ",")), dash(strings.Join(k.Components, ",")),
				dash(strings.Join(k.Remarks(), "; ")), lastRun(k.LastRun), strconv.Itoa(k.Priority), dash(k.Incarnation), dash(k.Address),
			}, k})
		}
	}
	return l, nil
}

// lastRun is when a candidate was heard of its checks. It is a time, not an age: a watched list changes with what happens.
func lastRun(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.UTC().Format(time.RFC3339)
}
