package view

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// CheckDerived says where what follows from the state does not follow from it any more.
func (v *View) CheckDerived() error {
	for _, g := range v.groups {
		if err := g.checkDerived(); err != nil {
			return fmt.Errorf("group %s: %w", g.Name, err)
		}
	}
	return nil
}

func (g *Group) checkDerived() error {
	joined := 0
	for _, k := range g.Candidates {
		if k.Joined != 0 {
			joined++
		}
		was := k.failed
		if k.recount(); was != k.failed {
			return fmt.Errorf("candidate %s: failed is %t", k.Name, was)
		}
	}
	if joined != g.roster.joined {
		return fmt.Errorf("%d candidates joined, the roster has %d", joined, g.roster.joined)
	}
	for _, c := range g.Components {
		if err := g.checkComponent(c); err != nil {
			return fmt.Errorf("component %s: %w", c.Name, err)
		}
	}
	for name, all := range g.roster.leads {
		if all.candidate != name || len(all.components) == 0 {
			return fmt.Errorf("the list of %s has the name %s and %d components", name, all.candidate, len(all.components))
		}
	}
	return nil
}

func (g *Group) checkComponent(c *Component) error {
	for _, k := range g.Candidates {
		may := k.Joined != 0 && slices.Contains(k.Components, c.Name)
		if may != slices.Contains(c.joined, k) {
			return fmt.Errorf("%s may lead it: %t; its list differs", k.Name, may)
		}
	}
	for _, k := range c.joined {
		if g.Candidates[k.Name] != k {
			return fmt.Errorf("%s may lead it, and is forgotten", k.Name)
		}
	}
	led := slices.Collect(maps.Values(g.roster.leads))
	times := 0
	for _, l := range led {
		for i, other := range l.components {
			if other != c {
				continue
			}
			times++
			if c.Term == nil || l.candidate != c.Term.Candidate || int(c.led) != i || c.ledBy != l {
				return fmt.Errorf("it stands at %d in the list of %s", i, l.candidate)
			}
		}
	}
	if open := c.Term != nil; open != (times == 1) {
		return fmt.Errorf("its term is open: %t; it stands in %d lists", open, times)
	}
	return nil
}

// Fit says whether a candidate may take a component over.
func (v *View) Fit(group, component, candidate string, now time.Time) bool {
	g := v.groups[group]
	c, k := g.Components[component], g.Candidates[candidate]
	return k != nil && k.mayLead(c) && g.fit(c, k, now)
}

// Timers is how many wait for a moment.
func (v *View) Timers() int { return len(v.agenda.timers) }

// Touched are the components that are to be looked at, and groups for themselves.
func (v *View) Touched() []string {
	var all []string
	for g := range v.agenda.groups {
		if g.agenda.self {
			all = append(all, g.Name)
		}
		for _, c := range g.agenda.queue {
			all = append(all, g.Name+"/"+c.Name)
		}
	}
	slices.Sort(all)
	return all
}
