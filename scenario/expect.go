package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// expectation is what an expect step may ask for. Whatever it leaves out is not looked at.
type expectation struct {
	Verdict   string                      `json:"verdict"`
	View      map[string]map[string]any   `json:"view"`
	Target    map[string]map[string]any   `json:"target"`
	Decisions []map[string]map[string]any `json:"decisions"`
	Without   []string                    `json:"without"`
	Alerts    *[]string                   `json:"alerts"`
}

// expect compares the world with an expectation, and names everything that differs.
func (w *world) expect(value jsontext.Value) error {
	var e expectation
	if err := strict("expect", value, &e); err != nil {
		return err
	}
	d := &diff{sessions: w.sessions}
	if e.Verdict != "" {
		if w.newest < 0 {
			return errors.New("verdict: there was no event yet")
		}
		d.verdict(e.Verdict, w.verdicts[w.newest])
	}
	for _, name := range sortedKeys(e.View) {
		if err := d.component(name, e.View[name], w.component(name), w.view.Group(group)); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(e.Target) {
		if err := w.expectTarget(d, name, e.Target[name]); err != nil {
			return err
		}
	}
	if err := w.expectDecisions(d, &e); err != nil {
		return err
	}
	if e.Alerts != nil {
		d.compare("alerts", words(*e.Alerts), words(w.alerts()))
	}
	w.since, w.attempted = len(w.log), 0
	return failed(d.lines)
}

func (w *world) component(name string) *view.Component {
	if g := w.view.Group(group); g != nil && g.Components[name] != nil {
		return g.Components[name]
	}
	return &view.Component{Name: name}
}

// diff collects what differs.
type diff struct {
	lines    []string
	sessions *sessions
}

func (d *diff) compare(what, want, got string) {
	if want != got {
		d.lines = append(d.lines, fmt.Sprintf("  %s\n    expected %s\n    got      %s", what, want, got))
	}
}

func (d *diff) verdict(want string, got view.Result) {
	text := string(got.Verdict)
	if want != text && got.Reason != "" {
		text += " (" + got.Reason + ")"
	}
	d.compare("verdict", want, text)
}

func (d *diff) component(name string, want map[string]any, c *view.Component, g *view.Group) error {
	got := map[string]any{
		"phase": c.Phase(), "candidate": "none", "session": "none", "intent": nil, "ready": "unknown", "yield": nil,
		"anomalies": words(anomalies(c, g)),
	}
	if t := c.Term; t != nil {
		got["candidate"], got["session"] = t.Candidate, d.sessions.name(name, t.Session)
		if t.Ready != "" {
			got["ready"] = t.Ready
		}
		if t.Yield != nil {
			got["yield"] = map[string]any{"to": t.Yield.To, "reason": t.Yield.Reason}
		}
	}
	if l := c.Leader(); l != nil {
		got["intent"] = d.entry(name, l)
	}
	for _, field := range sortedKeys(want) {
		is, ok := got[field]
		if !ok {
			return fmt.Errorf("view: %s: %q is no field%s", name, field, nearest.Hint(field, sortedKeys(got)))
		}
		d.value("view: "+name+": "+field, want[field], is)
	}
	return nil
}

// value compares what was asked for; of a map only the keys that were asked for.
func (d *diff) value(what string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			d.compare(what, fmt.Sprint(w), "none")
			return
		}
		for _, key := range sortedKeys(w) {
			d.compare(what+"."+key, fmt.Sprint(w[key]), fmt.Sprint(g[key]))
		}
	case []any:
		list := make([]string, 0, len(w))
		for _, x := range w {
			list = append(list, fmt.Sprint(x))
		}
		d.compare(what, words(list), fmt.Sprint(got))
	default:
		if got == nil {
			got = "none"
		}
		d.compare(what, fmt.Sprint(want), fmt.Sprint(got))
	}
}

func anomalies(c *view.Component, g *view.Group) []string {
	var names []string
	for _, a := range c.Anomalies {
		names = append(names, a.Name)
	}
	if g != nil {
		for _, a := range g.Anomalies {
			names = append(names, a.Name)
		}
	}
	return names
}

// entry is leader info, its session called as in the file.
func (d *diff) entry(component string, l *journal.LeaderInfo) map[string]any {
	return map[string]any{"session": d.sessions.name(component, l.Session), "address": l.Address, "candidate": l.Candidate}
}

func (w *world) expectTarget(d *diff, name string, want map[string]any) error {
	o := w.objects[name]
	if o == nil {
		return fmt.Errorf("target: there is no target %s%s", name, nearest.Hint(name, sortedKeys(w.objects)))
	}
	for _, component := range sortedKeys(want) {
		shown, err := o.backend.Show(w.ctx, component)
		if err != nil {
			return err
		}
		what, is := "target: "+name+": "+component, shown.Entries[component]
		if fields, ok := want[component].(map[string]any); ok && is != nil {
			d.value(what, fields, d.entry(component, is))
			continue
		}
		got := "absent"
		if is != nil {
			got = fmt.Sprint(d.entry(component, is))
		}
		if want[component] == "none" {
			want[component] = "absent"
		}
		d.compare(what, fmt.Sprint(want[component]), got)
	}
	return nil
}

// decisions are the kinds that count as such, in expect.
func decisions() []string {
	return []string{"yield", "hold", "grant", "revoke", "stale", "alert", "clear"}
}

func (w *world) expectDecisions(d *diff, e *expectation) error {
	made, kinds := w.decided()
	for _, kind := range e.Without {
		if kind == "push" {
			if w.attempted > 0 {
				d.compare("without push", "no write", fmt.Sprintf("%d writes", w.attempted))
			}
			continue
		}
		if !slices.Contains(decisions(), kind) {
			return fmt.Errorf("without: %q is none of %q or push", kind, decisions())
		}
		if slices.Contains(kinds, kind) {
			d.compare("without "+kind, "none", strings.Join(describe(made), ", "))
		}
	}
	if e.Decisions == nil {
		return nil
	}
	if len(e.Decisions) != len(made) {
		d.compare("decisions", strings.Join(describe(e.Decisions), ", "), strings.Join(describe(made), ", "))
		return nil
	}
	for i, want := range e.Decisions {
		for kind, fields := range want {
			got, ok := made[i][kind]
			if !ok {
				d.compare(fmt.Sprintf("decision %d", i+1), describe(e.Decisions)[i], describe(made)[i])
				continue
			}
			for _, field := range sortedKeys(fields) {
				d.compare(fmt.Sprintf("decision %d: %s.%s", i+1, kind, field), fmt.Sprint(fields[field]), fmt.Sprint(got[field]))
			}
		}
	}
	return nil
}

// decided lists the decisions with force that projectors appended since the last expect.
func (w *world) decided() (made []map[string]map[string]any, kinds []string) {
	for i := w.since; i < len(w.log); i++ {
		r := &w.log[i]
		if r.Err != nil || !strings.HasPrefix(r.Event.Source, "projector/") || w.verdicts[i].Verdict == view.Void {
			continue
		}
		kind := r.Event.Data.Kind()
		if !slices.Contains(decisions(), kind) {
			continue
		}
		fields := map[string]any{}
		if err := json.Unmarshal(mustJSON(r.Event.Data), &fields); err != nil {
			continue // cannot be: it was encoded just now
		}
		if s, ok := fields["session"].(string); ok {
			fields["session"] = w.sessions.name(r.Event.Component, s)
		}
		made = append(made, map[string]map[string]any{kind: fields})
		kinds = append(kinds, kind)
	}
	return made, kinds
}

func describe(list []map[string]map[string]any) []string {
	var all []string
	for _, m := range list {
		for kind, fields := range m {
			var parts []string
			for _, f := range []string{"session", "candidate", "to", "name", "reason"} {
				if v, ok := fields[f]; ok {
					parts = append(parts, f+": "+fmt.Sprint(v))
				}
			}
			all = append(all, kind+"{"+strings.Join(parts, ", ")+"}")
		}
	}
	return all
}

func (w *world) alerts() []string {
	var names []string
	g := w.view.Group(group)
	if g == nil {
		return nil
	}
	for _, a := range g.Alerts {
		names = append(names, a.Name)
	}
	for _, c := range g.Components {
		for _, a := range c.Alerts {
			names = append(names, a.Name)
		}
	}
	return names
}

// words is a set of names as text.
func words(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 0 {
		return "none"
	}
	return "[" + strings.Join(names, " ") + "]"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
