package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/view/compare"
)

// differ is one use of `journald diff`.
type differ struct {
	*remote
	format string
	all    bool
}

func newDiff(r *remote) *cobra.Command {
	d := &differ{remote: r}
	c := &cobra.Command{
		Use:   "diff [GROUP[/COMPONENT]]",
		Short: "Compare what every target shows now with the view",
		Long: "Read every target now, as its backend has it, and compare it with what the view wants it to show.\n" +
			"Ends with 0 where all is the same, with 1 where something differs, and with 3 where nothing is known to\n" +
			"differ but a target can't be read. What is only observed is no difference.",
		Example:           "  journald diff\n  journald diff flink-prod/restserver --all -o wide",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeDiff(r),
		RunE: func(c *cobra.Command, args []string) error {
			return d.run(c.Context(), strings.Join(args, ""))
		},
	}
	addFormat(c, &d.format)
	c.Flags().BoolVarP(&d.all, "all", "a", false, "list what is the same, too")
	return c
}

func (d *differ) run(ctx context.Context, name string) error {
	out, err := newPrinter(d.out, d.format)
	if err != nil {
		return err
	}
	rows, err := d.rows(ctx, name)
	if err != nil {
		return err
	}
	now := time.Now()
	l := &listing{
		columns: []string{
			"COMPONENT", "TARGET", "STATE", "REASON", "SHOWS", "MUST SHOW", "OUT FOR", "KIND", "SEQUENCE", "REVISION", "HOLDER", "ERROR",
		},
		wide: 5,
	}
	count := map[string]int{}
	for i := range rows {
		count[rows[i].State]++
		if d.all || rows[i].State != compare.Same {
			l.rows = append(l.rows, diffLine(&rows[i], now))
		}
	}
	if err := out.print(l); err != nil {
		return err
	}
	if d.format == "table" || d.format == "wide" {
		d.explain(rows, now)
	}
	return d.verdict(count, len(rows))
}

// rows are all that there is to compare.
func (d *differ) rows(ctx context.Context, name string) ([]api.DiffRow, error) {
	group, component, _ := strings.Cut(name, "/")
	query := url.Values{"timeout": {min(d.timeout*4/5, longestWait).String()}}
	for key, value := range map[string]string{"group": group, "component": component} {
		if value != "" {
			query.Set(key, value)
		}
	}
	var all []api.DiffRow
	for {
		var page api.Diff
		if err := d.get(ctx, "/v1/diff?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Rows...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
}

// verdict says in a line what was found, and how the process ends. That something differs outweighs what is not known.
func (d *differ) verdict(count map[string]int, total int) error {
	differs, unread := count[compare.Differs], count[api.Unreachable]
	switch {
	case total == 0:
		fmt.Fprintln(d.err, "There is nothing to compare: no component is known yet.")
	case differs+unread == 0:
		fmt.Fprintf(d.err, "%d compared, none differs%s.\n", total-count[compare.Observed], observedToo(count))
	default:
		fmt.Fprintf(d.err, "%d of %d differ, %d can't be read%s.\n", differs, total-count[compare.Observed], unread, observedToo(count))
	}
	switch {
	case differs > 0:
		return no(errSaid)
	case unread > 0:
		return unreachable(errSaid)
	}
	return nil
}

func observedToo(count map[string]int) string {
	if n := count[compare.Observed]; n > 0 {
		return fmt.Sprintf("; %d more are only observed", n)
	}
	return ""
}

func diffLine(r *api.DiffRow, now time.Time) row {
	shows, must, sequence, revision, holder, since := "?", "-", "", "", "", ""
	if r.Should != nil {
		must, sequence = addressOf(r.Should), strconv.FormatUint(r.Should.Sequence, 10)
	}
	if r.Shows != nil {
		shows, holder, revision = addressOf(r.Shows), r.Shows.Holder, strconv.FormatUint(r.Shows.Revision, 10)
		sequence = strings.TrimSuffix(strconv.FormatUint(r.Shows.Sequence, 10)+"/"+sequence, "/")
	}
	failure := r.Error
	if r.Push != nil {
		failure = first(failure, r.Push.Error)
		since = age(r.Push.OutSince, now)
	}
	name := r.Group + "/" + r.Component
	return row{name + "@" + r.Target, []string{
		name, r.Target, r.State, dash(r.Reason), shows, must, dash(since), r.Kind, dash(sequence), dash(revision), dash(clean(holder)),
		dash(clean(failure)),
	}, r}
}

func addressOf(s *api.Standing) string {
	if s.Leader == nil {
		return "nobody"
	}
	return dash(clean(first(s.Leader.Address, s.Leader.Candidate)))
}

// clean keeps what others wrote from moving the cursor of a terminal, or from filling it.
func clean(s string) string {
	const most = 1024
	s = strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func completeDiff(r *remote) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, noFiles
		}
		return r.components(contextOf(c), prefix, func(string) bool { return true }), noFiles
	}
}
