package view

import "slices"

// roster says which components each candidate leads, and how many candidates take part: what the state says, read the
// other way round, so that a record costs what the components that it concerns cost. It follows from the state and is
// no part of it.
type roster struct {
	joined int
	leads  map[string]*led // by candidate
}

// led are the components whose open term one candidate holds, in no order.
type led struct {
	candidate  string
	components []*Component
}

// enlist has a joined candidate count for its components.
func (g *Group) enlist(k *Candidate) {
	g.roster.joined++
	for _, name := range k.Components {
		if c := g.component(name); !slices.Contains(c.joined, k) {
			c.joined = append(c.joined, k)
		}
	}
}

// strike has a candidate count no more.
func (g *Group) strike(k *Candidate) {
	g.roster.joined--
	for _, name := range k.Components {
		c := g.component(name)
		c.joined = slices.DeleteFunc(c.joined, func(other *Candidate) bool { return other == k })
	}
}

// lead replaces the open term of a component; nil leaves none open.
func (g *Group) lead(c *Component, t *Term) {
	if c.Term != nil {
		g.roster.remove(c)
	}
	if c.Term = t; t != nil {
		g.roster.add(c)
	}
}

func (r *roster) add(c *Component) {
	if r.leads == nil {
		r.leads = map[string]*led{}
	}
	all := r.leads[c.Term.Candidate]
	if all == nil {
		all = &led{candidate: c.Term.Candidate}
		r.leads[all.candidate] = all
	}
	c.Term.Candidate = all.candidate // one copy of the name
	c.ledBy, c.led = all, int32(len(all.components))
	all.components = append(all.components, c)
}

func (r *roster) remove(c *Component) {
	all := c.ledBy
	c.ledBy = nil
	last := len(all.components) - 1
	all.components[last].led = c.led
	all.components[c.led], all.components[last] = all.components[last], nil
	all.components = all.components[:last]
	if last == 0 {
		delete(r.leads, all.candidate)
	}
}

// by are the components that a candidate leads.
func (r *roster) by(candidate string) []*Component {
	if all := r.leads[candidate]; all != nil {
		return all.components
	}
	return nil
}

// LedBy are the components whose open term a candidate holds, in no order. The list is the group's own.
func (g *Group) LedBy(candidate string) []*Component { return g.roster.by(candidate) }

// concernedBy are the components that a candidate leads, or may lead if it joins.
func (g *Group) concernedBy(candidate string) []*Component {
	var all []*Component
	if k := g.Candidates[candidate]; k != nil {
		for _, name := range k.Components {
			if c := g.Components[name]; c != nil {
				all = append(all, c)
			}
		}
	}
	return append(all, g.roster.by(candidate)...)
}

// index derives the roster from the state.
func (g *Group) index() {
	g.roster = roster{}
	for _, c := range g.Components {
		if c.Term != nil {
			g.roster.add(c)
		}
	}
	for _, k := range g.Candidates {
		k.recount()
		if k.Joined != 0 {
			g.enlist(k)
		}
	}
}
