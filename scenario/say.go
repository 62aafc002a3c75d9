package scenario

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// say appends an event of the file, its shorthand filled in.
func (w *world) say(s step) error {
	fields := map[string]jsontext.Value{}
	if err := json.Unmarshal(s.value, &fields); err != nil {
		return fmt.Errorf("%s: its value is not a map of fields", s.verb)
	}
	component := take(fields, "component")
	if err := w.fillIn(s.verb, component, fields); err != nil {
		return fmt.Errorf("%s: %w", s.verb, err)
	}
	text, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("%s: %w", s.verb, err)
	}
	data, err := journal.DecodeData(s.verb, text, json.RejectUnknownMembers(true))
	if err != nil {
		return fmt.Errorf("%s: %w", s.verb, err)
	}
	w.spoke()
	if _, err := w.store(w.event(source(data), component, data)); err != nil {
		return err
	}
	w.lives(data, w.verdicts[w.newest].Verdict)
	return nil
}

// fillIn completes the shorthand of the format.
func (w *world) fillIn(verb, component string, f map[string]jsontext.Value) error {
	for _, field := range []string{"incarnation", "session", "candidate"} { // YAML reads 1 as a number
		if v, ok := f[field]; ok && v.Kind() == '0' {
			f[field] = quote(string(v))
		}
	}
	w.standFor(component, f)
	switch verb {
	case "join":
		set(f, "components", mustJSON(w.scenario.names))
		set(f, "incarnation", quote("1"))
	case "leave", "health":
		set(f, "incarnation", quote("1"))
		if verb == "health" {
			set(f, "check", quote("disk"))
			set(f, "run", mustJSON(w.nextRun(text(f["candidate"]), text(f["incarnation"]), text(f["check"]))))
		}
	case "confirm":
		set(f, "candidate", quote(w.holder(component, text(f["session"]))))
		set(f, "attempt", mustJSON(w.nextAttempt(component, text(f["session"]))))
	case "retry":
		set(f, "attempt", mustJSON(w.nextAttempt(component, text(f["session"]))))
		set(f, "after", quote("1s"))
	case "watch":
		return w.fillInWatch(component, f)
	case "transfer", "exclude", "include", "pause", "resume", "policy":
		set(f, "actor", quote("test"))
		set(f, "reason", quote("test"))
		if v, ok := f["until"]; ok {
			at, err := w.until(v)
			if err != nil {
				return err
			}
			f["until"] = mustJSON(at)
		}
	}
	return nil
}

// fillInWatch gives an observation the revision and the sequence that it is said to be of.
func (w *world) fillInWatch(component string, f map[string]jsontext.Value) error {
	o := w.objects[text(f["target"])]
	if o == nil {
		return fmt.Errorf("there is no target %s", f["target"])
	}
	if _, ok := f["entry"]; !ok {
		f["entry"] = jsontext.Value("null")
	}
	revision := "current"
	if v, ok := f["revision"]; ok {
		revision = text(v)
	}
	if revision == "new" {
		if err := o.backend.Write(w.ctx, Change{Component: component, Touch: true}); err != nil {
			return err
		}
	}
	shown, err := o.backend.Show(w.ctx, component)
	if err != nil {
		return err
	}
	switch revision {
	case "current", "new":
		f["revision"] = mustJSON(shown.Revision)
	case "old":
		f["revision"] = mustJSON(w.before(component, o.name, shown.Revision))
	}
	if shown.Sequence != 0 {
		set(f, "sequence", mustJSON(shown.Sequence))
	}
	return nil
}

// before is a revision older than the last push.
func (w *world) before(component, target string, now uint64) uint64 {
	if g := w.view.Group(group); g != nil {
		if c := g.Components[component]; c != nil && c.Targets[target] != nil && c.Targets[target].Revision > 1 {
			return c.Targets[target].Revision - 1
		}
	}
	return max(now, 2) - 1
}

// holder is who was granted a session.
func (w *world) holder(component, session string) string {
	for i := range w.log {
		if d, ok := w.log[i].Event.Data.(*journal.Grant); ok && w.log[i].Event.Component == component && d.Session == session {
			return d.Candidate
		}
	}
	return ""
}

func (w *world) nextAttempt(component, session string) uint64 {
	var high uint64
	for i := range w.log {
		if d, ok := w.log[i].Event.Data.(*journal.Confirm); ok && w.log[i].Event.Component == component && d.Session == session {
			high = max(high, d.Attempt)
		}
	}
	return high + 1
}

func (w *world) nextRun(candidate, incarnation, check string) uint64 {
	var high uint64
	for i := range w.log {
		d, ok := w.log[i].Event.Data.(*journal.Health)
		if ok && d.Candidate == candidate && d.Incarnation == incarnation && d.Check == check {
			high = max(high, d.Run)
		}
	}
	return high + 1
}

// source is who says such a thing.
func source(data journal.Data) string {
	switch d := data.(type) {
	case *journal.Watch:
		return "observer/" + d.Target
	case *journal.Withdraw:
		if d.Session == "" {
			return cmp.Or(journal.SourceOf(d), "operator/test")
		}
	}
	return cmp.Or(journal.SourceOf(data), "elector/test")
}

func set(f map[string]jsontext.Value, field string, value jsontext.Value) {
	if _, ok := f[field]; !ok {
		f[field] = value
	}
}

func take(f map[string]jsontext.Value, field string) string {
	s := text(f[field])
	delete(f, field)
	return s
}

// text is a scalar as a word.
func text(v jsontext.Value) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

func quote(s string) jsontext.Value { return mustJSON(s) }

// mustJSON encodes what always has a JSON form.
func mustJSON(v any) jsontext.Value {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// line is a record as the journal is printed with -v.
func line(r *journal.Record, result view.Result) string {
	if r.Err != nil {
		return fmt.Sprintf("%5d %s %-10s %-12s %s", r.Sequence, r.Time.Format("15:04:05.000"), "?", result.Verdict, result.Reason)
	}
	data, err := json.Marshal(r.Event.Data, json.Deterministic(true))
	if err != nil {
		data = []byte(err.Error())
	}
	s := fmt.Sprintf("%5d %s %-10s %-12s %s/%s %s", r.Sequence, r.Time.Format("15:04:05.000"), r.Event.Data.Kind(),
		result.Verdict, r.Event.Group, r.Event.Component, data)
	if result.Reason != "" {
		s += "  # " + result.Reason
	}
	return s
}
