package server

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

// mostNewGroups is how many groups that nobody spoke of before may begin in a minute: a group is kept for ever.
const mostNewGroups = 1000

// groupGate keeps a client that makes names up from filling the view.
type groupGate struct {
	projector *projector.Projector

	mu     sync.Mutex
	known  map[string]struct{} // that the view had, or that were let in
	left   int                 // in this minute
	minute time.Time           // when it began
}

func newGroupGate(p *projector.Projector) *groupGate {
	return &groupGate{projector: p, known: map[string]struct{}{}, left: mostNewGroups}
}

func (g *groupGate) admit(events []journal.Event, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var fresh map[string]struct{}
	for i := range events {
		name := events[i].Group
		if _, known := g.known[name]; known || g.inView(name) {
			continue
		}
		if fresh == nil {
			fresh = map[string]struct{}{}
		}
		fresh[name] = struct{}{}
	}
	if len(fresh) == 0 {
		return nil
	}
	if now.Sub(g.minute) >= time.Minute {
		g.minute, g.left = now, mostNewGroups
	}
	if len(fresh) > g.left {
		r := refuse(http.StatusTooManyRequests, "too-many-groups", fmt.Sprintf("more than %d groups that nobody spoke of before "+
			"would begin within a minute; nothing was stored; check the groups' names, or wait", mostNewGroups))
		r.retryAfter = max(g.minute.Add(time.Minute).Sub(now), time.Second)
		return r
	}
	g.left -= len(fresh)
	for name := range fresh {
		g.known[name] = struct{}{}
	}
	return nil
}

func (g *groupGate) inView(name string) (known bool) {
	g.projector.Read(func(v *view.View) { known = v.Group(name) != nil })
	if known {
		g.known[name] = struct{}{}
	}
	return known
}
