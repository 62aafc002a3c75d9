package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/view"
)

// rehearse says what would come of the order. The answer is no where it would be refused.
func (o *orderer) rehearse(ctx context.Context, path string, body []byte) error {
	var r api.Rehearsal
	if err := o.post(ctx, path+"?dryRun=true", body, &r); err != nil {
		return err
	}
	if err := o.printRehearsal(&r); err != nil {
		return err
	}
	fmt.Fprintln(o.err, "Nothing was stored.")
	if r.Verdict == view.Invalid {
		return no(errSaid)
	}
	return nil
}

func (o *orderer) printRehearsal(r *api.Rehearsal) error {
	about := r.Group
	if r.Component != "" {
		about += "/" + r.Component
	}
	out, err := newPrinter(o.out, o.format)
	if err != nil {
		return err
	}
	switch o.format {
	case "json", "jsonl", "yaml", "name":
		return out.print(&listing{rows: []row{{about, nil, r}}})
	}
	w := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	line := func(key, format string, args ...any) { fmt.Fprintf(w, key+":\t"+format+"\n", args...) }
	line("Order", "%s %s, by %s", r.Kind, about, r.Actor)
	line("Verdict", "%s", verdictWords(r))
	if r.Advice != "" {
		line("Advice", "%s", r.Advice)
	}
	for i := range r.Decided {
		line("Decided", "%s", decidedWords(&r.Decided[i]))
	}
	for i := range r.Prospects {
		describeProspect(line, r.Group, &r.Prospects[i])
	}
	return w.Flush()
}

func verdictWords(r *api.Rehearsal) string {
	text := "it would be " + string(r.Verdict)
	if r.Verdict == view.Invalid {
		text = "it would be refused"
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

func decidedWords(d *api.Decided) string {
	switch d.Kind {
	case "yield":
		return fmt.Sprintf("%s is told to yield %s to %s: %s", d.Candidate, d.Component, dash(d.To), d.Reason)
	case "grant":
		return fmt.Sprintf("%s is granted %s", d.Candidate, d.Component)
	case "revoke":
		return fmt.Sprintf("%s's term of %s ends: %s", d.Candidate, d.Component, d.Reason)
	}
	var words []string
	for _, w := range []string{d.Kind, d.Component, d.Name, d.Candidate} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.TrimSuffix(strings.Join(words, " ")+": "+d.Reason, ": ")
}

// describeProspect says who leads, who would, and of each candidate what keeps it from it.
func describeProspect(line teller, group string, p *view.Prospect) {
	switch next := first(p.Next, "nobody"); {
	case p.Holder == p.Next && p.Next != "":
		line(group+"/"+p.Component, "%s leads, and would go on", p.Holder)
	default:
		line(group+"/"+p.Component, "%s leads, %s would follow", first(p.Holder, "nobody"), next)
	}
	for _, c := range p.Chances {
		line("  "+c.Candidate, "%s", chanceWords(&c))
	}
}
