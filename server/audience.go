package server

import (
	"sync"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// hub knows who wants to hear of which candidate, and wakes those whom a record may concern as it is folded: a record
// costs what the candidates cost that it is about, however many others are listened for.
type hub struct {
	mu     sync.Mutex
	groups map[string]*audience
}

// audience are the listeners of one group.
type audience struct {
	candidates map[string]map[*listener]struct{}
	holders    map[string]string // of terms, by component, as their listeners were last woken for them
}

// listener wants to hear of one candidate.
type listener struct {
	group, candidate string
	woken            chan struct{} // of one: something may have changed since it was taken
}

func newHub() *hub { return &hub{groups: map[string]*audience{}} }

// listen begins to wake a listener. The view must be locked until the listener has read where the candidate stands.
func (h *hub) listen(v *view.View, group, candidate string) *listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.groups[group]
	if a == nil {
		a = &audience{candidates: map[string]map[*listener]struct{}{}, holders: map[string]string{}}
		h.groups[group] = a
	}
	if a.candidates[candidate] == nil {
		a.candidates[candidate] = map[*listener]struct{}{}
	}
	l := &listener{group: group, candidate: candidate, woken: make(chan struct{}, 1)}
	a.candidates[candidate][l] = struct{}{}
	if g := v.Group(group); g != nil {
		for _, c := range g.LedBy(candidate) {
			a.holders[c.Name] = candidate
		}
	}
	return l
}

// leave ends it. Whose terms a group's last listener heard of is forgotten with it.
func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.groups[l.group]
	delete(a.candidates[l.candidate], l)
	if len(a.candidates[l.candidate]) == 0 {
		delete(a.candidates, l.candidate)
	}
	if len(a.candidates) == 0 {
		delete(h.groups, l.group)
	}
}

// folded wakes whom a record may concern. It is the projector's tap.
func (h *hub) folded(r *journal.Record, result view.Result) {
	if result.Group == nil || result.Verdict != view.Applied {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.groups[result.Group.Name]
	if a == nil {
		return
	}
	switch d := r.Event.Data.(type) {
	case *journal.Push, *journal.Alert, *journal.Clear:
		return // of targets and conditions, never of candidates
	case *journal.Policy:
		for name := range a.candidates {
			a.wake(name)
		}
	case *journal.Join:
		a.wake(d.Candidate)
	case *journal.Leave:
		a.wake(d.Candidate)
	case *journal.Health:
		a.wake(d.Candidate)
	case *journal.Stale:
		a.wake(d.Candidate)
	}
	if result.Component != nil {
		a.passOn(result.Component)
	}
}

// passOn wakes for whoever holds the term of a component, and for whoever held it before.
func (a *audience) passOn(c *view.Component) {
	before := a.holders[c.Name]
	a.wake(before)
	delete(a.holders, c.Name)
	if c.Term == nil {
		return
	}
	if now := c.Term.Candidate; now == before || a.candidates[now] != nil {
		a.holders[c.Name] = now
		if now != before {
			a.wake(now)
		}
	}
}

func (a *audience) wake(candidate string) {
	for l := range a.candidates[candidate] {
		select {
		case l.woken <- struct{}{}:
		default:
		}
	}
}
