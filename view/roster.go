package view

import "slices"

// roster says which components each candidate leads, and how many candidates take part: what the state says, read the
// other way round, so that a record costs what the components that it concerns cost. It follows from the state and is
// no part of it.
type roster struct {
	joined int
	leads  map[string]*Component // by candidate: the first of a list of those whose open term it holds
}

// ledBy links the components that one candidate leads.
type ledBy struct {
	next, previous *Component
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
		r.leads = map[string]*Component{}
	}
	first := r.leads[c.Term.Candidate]
	if c.led.next = first; first != nil {
		first.led.previous = c
	}
	r.leads[c.Term.Candidate] = c
}

func (r *roster) remove(c *Component) {
	next, previous := c.led.next, c.led.previous
	switch {
	case previous != nil:
		previous.led.next = next
	case next != nil:
		r.leads[c.Term.Candidate] = next
	default:
		delete(r.leads, c.Term.Candidate)
	}
	if next != nil {
		next.led.previous = previous
	}
	c.led = ledBy{}
}

// led are the components that a candidate leads.
func (g *Group) led(candidate string) func(yield func(*Component) bool) {
	return func(yield func(*Component) bool) {
		for c := g.roster.leads[candidate]; c != nil; c = c.led.next {
			if !yield(c) {
				return
			}
		}
	}
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
		if k.Joined != 0 {
			g.enlist(k)
		}
	}
}
