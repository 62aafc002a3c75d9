package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/journal"
)

// Rehearsal is what would come of an event if it were the next record, as far as nobody else has a say in it: what a
// holder does once it is told to yield, or what happens later, is not played.
type Rehearsal struct {
	Verdict   Verdict
	Reason    string
	Decided   []Proposal // by the projector, because of the event, in order
	Prospects []Prospect // of the components that it concerns, by name
}

// Prospect is who would lead one component.
type Prospect struct {
	Component string   `json:"component"`
	Holder    string   `json:"holder,omitzero"` // of the open term, before the event
	Next      string   `json:"next,omitzero"`   // who leads after it, or is to take over once the holder has let go
	Chances   []Chance `json:"chances"`         // of those that may lead it: first those that could take over, the best one first
}

// Chance is a candidate's for one component: it is fit to take over where nothing stands in its way.
type Chance struct {
	Candidate string     `json:"candidate"`
	Priority  int        `json:"priority"`
	Obstacles []Obstacle `json:"obstacles,omitempty"`

	joined uint64
}

// Rehearse says what would come of an event if it were folded at now, the log's clock. It is a fold of a copy of the
// event's group: the view stays as it is. It costs what it takes to write the state of that one group and to read it
// again, 8 ms for 1,000 components.
func (v *View) Rehearse(e *journal.Event, now time.Time, live Liveness) (*Rehearsal, error) {
	stage, err := v.excerpt(e.Group)
	if err != nil {
		return nil, fmt.Errorf("rehearse a %s: %w", e.Data.Kind(), err)
	}
	holders := stage.holders(e.Group)
	result := stage.Apply(&journal.Record{Sequence: v.sequence + 1, Time: now, Event: *e})
	r := &Rehearsal{Verdict: result.Verdict, Reason: result.Reason}
	r.Decided = stage.play(now, live)
	r.Prospects = stage.prospects(e, r.Decided, holders, now, live)
	return r, nil
}

// excerpt is a view of one group alone, with nothing on its agenda.
func (v *View) excerpt(group string) (*View, error) {
	stage := New()
	stage.sequence, stage.time, stage.projector, stage.instance = v.sequence, v.time, v.projector, v.instance
	g := v.groups[group]
	if g == nil {
		return stage, nil
	}
	text, err := json.Marshal(g, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("write the state of group %s: %w", group, err)
	}
	g = &Group{}
	if err := json.Unmarshal(text, g, jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("read the state of group %s: %w", group, err)
	}
	g.index()
	stage.groups[group] = g
	return stage, nil
}

// holders are those of the open terms, by component.
func (v *View) holders(group string) map[string]string {
	all := map[string]string{}
	if g := v.groups[group]; g != nil {
		for name, c := range g.Components {
			if c.Term != nil {
				all[name] = c.Term.Candidate
			}
		}
	}
	return all
}

// play decides at now, and folds what is decided, until nothing is left to decide or a decision has no force.
func (v *View) play(now time.Time, live Liveness) []Proposal {
	var all []Proposal
	for {
		next := v.Decide(now, live, func(string) bool { return false })
		if len(next) == 0 {
			return all
		}
		p := next[0] // there is but one group
		all = append(all, p)
		for _, e := range p.Events("projector/"+v.instance, v.projector, now) {
			result := v.Apply(&journal.Record{Sequence: v.sequence + 1, Time: now, Event: e})
			if result.Verdict != Applied {
				return all
			}
		}
	}
}

// prospects are those of the component that an event is about, of those that its candidate leads or may lead, and of
// those about which something is decided.
func (v *View) prospects(e *journal.Event, decided []Proposal, holders map[string]string, now time.Time, live Liveness) []Prospect {
	g := v.groups[e.Group]
	if g == nil {
		return nil
	}
	about := map[string]bool{e.Component: true}
	for _, p := range decided {
		about[p.Component] = true
	}
	for _, c := range g.concernedBy(subjectOf(e.Data)) {
		about[c.Name] = true
	}
	var all []Prospect
	for _, name := range slices.Sorted(maps.Keys(about)) {
		if c := g.Components[name]; c != nil {
			all = append(all, Prospect{name, holders[name], c.next(), g.Chances(c, now, live)})
		}
	}
	return all
}

// subjectOf is the candidate that an operator's order to its group is about, or empty.
func subjectOf(data journal.Data) string {
	switch d := data.(type) {
	case *journal.Exclude:
		return d.Candidate
	case *journal.Include:
		return d.Candidate
	}
	return ""
}

// next is who leads, or is to take over.
func (c *Component) next() string {
	switch {
	case c.Term == nil:
		return ""
	case c.Term.Yield != nil:
		return c.Term.Yield.To
	}
	return c.Term.Candidate
}

// Chances are those of the candidates that have joined for a component, and of its holder: first those that nothing
// keeps from taking over, in the order in which they would be chosen, then the others by name.
func (g *Group) Chances(c *Component, now time.Time, live Liveness) []Chance {
	names := map[string]bool{}
	for _, k := range c.joined {
		names[k.Name] = true
	}
	if c.Term != nil && g.Candidates[c.Term.Candidate] != nil {
		names[c.Term.Candidate] = true
	}
	var all []Chance
	for name := range names {
		k := g.Candidates[name]
		all = append(all, Chance{name, k.Priority, g.Obstacles(c, k, now, live), k.Joined})
	}
	slices.SortFunc(all, Chance.compare)
	return all
}

func (a Chance) compare(b Chance) int {
	fit := func(c Chance) int { return min(len(c.Obstacles), 1) }
	if fit(a) != 0 && fit(b) != 0 {
		return cmp.Compare(a.Candidate, b.Candidate)
	}
	return cmp.Or(cmp.Compare(fit(a), fit(b)), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.joined, b.joined))
}
