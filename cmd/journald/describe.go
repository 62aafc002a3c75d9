package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/view"
)

func newDescribe(r *remote) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:               "describe GROUP/COMPONENT",
		Short:             "Say everything about one component",
		Example:           "  journald describe flink-prod/restserver",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeComponent(r),
		RunE: func(c *cobra.Command, args []string) error {
			group, component, err := splitName(args[0])
			if err != nil {
				return err
			}
			out, err := newPrinter(r.out, format)
			if err != nil {
				return err
			}
			var state api.Component
			if err := r.get(c.Context(), componentPath(group, component), &state); err != nil {
				return err
			}
			switch format {
			case "json", "jsonl":
				return out.json(&state)
			case "yaml":
				return out.yaml(&state)
			case "name":
				_, err := fmt.Fprintln(r.out, args[0])
				return err
			}
			return describe(r.out, &state, time.Now())
		},
	}
	addFormat(c, &format)
	return c
}

// describe writes it for a person to read.
func describe(out io.Writer, c *api.Component, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(key, format string, args ...any) { fmt.Fprintf(w, key+":\t"+format+"\n", args...) }
	line("Component", "%s/%s", c.Group, c.Name)
	line("State", "%s, as of record %d", c.Phase, c.Sequence)
	if c.Paused {
		line("Paused", "no yields and no elections %s", pauseWords(c.PausedTill))
	}
	describeTerm(line, c, now)
	switch {
	case c.Intent == nil:
		line("Shown", "nothing: nobody ever confirmed")
	case c.Intent.Leader == nil:
		line("Shown", "nothing: withdrawn by record %d", c.Intent.Sequence)
	default:
		l := c.Intent.Leader
		line("Shown", "%s, session %s, candidate %s, by record %d", l.Address, l.Session, dash(l.Candidate), c.Intent.Sequence)
		for _, key := range slices.Sorted(maps.Keys(l.Properties)) {
			line("  "+key, "%s", l.Properties[key])
		}
	}
	describeTargets(line, c, now)
	for i := range c.Candidates {
		line("Candidate "+c.Candidates[i].Name, "%s", candidateWords(&c.Candidates[i], c.Chances, now))
	}
	for _, a := range c.GroupAlerts {
		line("Alert of the group", "%s for %s: %s", a.Name, age(a.Since, now), a.Reason)
	}
	for _, a := range c.Alerts {
		line("Alert", "%s for %s: %s", a.Name, age(a.Since, now), a.Reason)
	}
	for _, a := range c.Anomalies {
		line("Anomaly", "%s: %s (records %s)", a.Name, a.Detail, numbers(a.Sequences))
	}
	return w.Flush()
}

func describeTerm(line teller, c *api.Component, now time.Time) {
	t := c.Term
	if t == nil {
		line("Term", "none is open")
		return
	}
	line("Term", "epoch %d, held by %s for %s, session %s", t.Epoch, t.Candidate, age(t.Since, now), t.Session)
	line("Ready", "%s", strings.TrimSuffix(c.Ready+": "+t.ReadyReason, ": "))
	if t.Released {
		line("Released", "yes")
	}
	if y := t.Yield; y != nil {
		line("Yield", "told %s ago to give it to %s: %s", age(y.Since, now), dash(y.To), y.Reason)
	}
}

func pauseWords(till time.Time) string {
	if till.IsZero() {
		return "until the group is resumed"
	}
	return "until " + till.UTC().Format(time.RFC3339)
}

// candidateWords is a candidate's health, and what keeps it from taking the component over.
func candidateWords(k *api.CandidateRow, chances []view.Chance, now time.Time) string {
	text := k.Condition()
	if !k.LastRun.IsZero() {
		text += ", last run " + age(k.LastRun, now) + " ago"
	}
	for i := range chances {
		if chances[i].Candidate == k.Name {
			return text + ": " + chanceWords(&chances[i])
		}
	}
	return text
}

// chanceWords is what keeps a candidate from taking over.
func chanceWords(c *view.Chance) string {
	if len(c.Obstacles) == 0 {
		return fmt.Sprintf("fit to take over, with priority %d", c.Priority)
	}
	var words []string
	for _, o := range c.Obstacles {
		words = append(words, o.String())
	}
	return strings.Join(words, ", ")
}

func numbers(all []uint64) string {
	return strings.Trim(fmt.Sprint(all), "[]")
}
