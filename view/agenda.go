package view

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// agenda knows what has to be looked at anew: the components that a record touched, and those for which time alone may
// have changed what is to be decided. It follows from the records and is no part of the view's state.
type agenda struct {
	groups map[*Group]struct{} // those with something to look at
	timers timers
}

// groupAgenda is what there is to look at in one group: the group itself first, then its components by name, whatever
// the order in which they were touched.
type groupAgenda struct {
	self  bool
	queue byName
	timer *timer // of the group itself
}

func newAgenda() agenda { return agenda{groups: map[*Group]struct{}{}} }

// touch has a component looked at, or the group itself where c is nil.
func (a *agenda) touch(g *Group, c *Component) {
	switch {
	case c == nil:
		g.agenda.self = true
	case c.queued:
		return
	default:
		c.queued = true
		heap.Push(&g.agenda.queue, c)
	}
	a.groups[g] = struct{}{}
}

// next is what to look at first, the same one until it is settled; false where nothing is left.
func (a *groupAgenda) next() (c *Component, ok bool) {
	if a.self {
		return nil, true
	}
	if len(a.queue) == 0 {
		return nil, false
	}
	return a.queue[0], true
}

// settle takes down what was looked at, until it is touched or the moment comes at which time alone may change what
// is decided; zero: never.
func (a *agenda) settle(g *Group, c *Component, wake time.Time) {
	slot := &g.agenda.timer
	if c == nil {
		g.agenda.self = false
	} else {
		heap.Pop(&g.agenda.queue)
		c.queued, slot = false, &c.timer
	}
	if !g.agenda.self && len(g.agenda.queue) == 0 {
		delete(a.groups, g)
	}
	a.wait(slot, timer{at: wake, group: g, component: c})
}

// wait sets the one timer that a component or group has.
func (a *agenda) wait(slot **timer, t timer) {
	switch was := *slot; {
	case was == nil && t.at.IsZero():
	case was == nil:
		*slot = &t
		heap.Push(&a.timers, *slot)
	case t.at.IsZero():
		heap.Remove(&a.timers, was.index)
		*slot = nil
	case !t.at.Equal(was.at):
		was.at = t.at
		heap.Fix(&a.timers, was.index)
	}
}

// expire touches whatever has waited for this moment.
func (a *agenda) expire(now time.Time) {
	for len(a.timers) > 0 && !a.timers[0].at.After(now) {
		t := heap.Pop(&a.timers).(*timer)
		if t.component == nil {
			t.group.agenda.timer = nil
		} else {
			t.component.timer = nil
		}
		a.touch(t.group, t.component)
	}
}

// ready are the groups with something to look at that are not busy, by name.
func (a *agenda) ready(busy func(group string) bool) []*Group {
	var all []*Group
	for g := range a.groups {
		if !busy(g.Name) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(x, y *Group) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// byName is a heap of components.
type byName []*Component

func (q byName) Len() int           { return len(q) }
func (q byName) Less(i, j int) bool { return q[i].Name < q[j].Name }
func (q byName) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *byName) Push(x any) { *q = append(*q, x.(*Component)) }

// Pop is for container/heap.
func (q *byName) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return c
}

type timer struct {
	at        time.Time
	group     *Group
	component *Component // nil: the group itself
	index     int        // in timers
}

// timers is a heap of moments.
type timers []*timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

// Push is for container/heap.
func (t *timers) Push(x any) {
	added := x.(*timer)
	added.index = len(*t)
	*t = append(*t, added)
}

// Pop is for container/heap.
func (t *timers) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return x
}
