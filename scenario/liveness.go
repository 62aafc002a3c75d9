package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

// alive is the simulated bucket of liveness keys, and the agents that keep them.
type alive struct {
	revision uint64
	keys     map[string]projector.Beat // by candidate
	agents   map[string]*agent         // by candidate: the newest of each
	leases   map[process]time.Time     // until when each may lead, by its last renewal
	claims   map[claim]process         // who may believe that it leads what
	muffled  string                    // the candidate of whose key no instance is told, or none
}

// process is one incarnation of a candidate.
type process struct{ candidate, incarnation string }

// claim is a confirmed session of a managed component, until its holder knows that it has ended.
type claim struct{ component, session string }

// agent keeps one candidate's key.
type agent struct {
	process
	silent  bool      // the file has it stopped
	stopped bool      // it found its key taken
	owns    bool      // it has taken the key
	next    time.Time // of its heartbeats
}

func newAlive() *alive {
	return &alive{
		keys: map[string]projector.Beat{}, agents: map[string]*agent{}, leases: map[process]time.Time{}, claims: map[claim]process{},
	}
}

// own is the clock of every instance: the world's.
func (w *world) own() time.Duration {
	return w.now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
}

func (w *world) lease() policy.Lease {
	if g := w.view.Group(group); g != nil {
		return g.Policy.Lease
	}
	return w.scenario.policy.Lease
}

// lives takes note of what an event of the file says of a candidate's process: one that has joined is alive.
func (w *world) lives(data journal.Data, v view.Verdict) {
	d, ok := data.(*journal.Join)
	if !ok || v == view.Stale {
		return
	}
	p := process{d.Candidate, d.Incarnation}
	a := w.alive.agents[d.Candidate]
	switch {
	case a == nil || a.process != p:
		a = &agent{process: p}
		w.alive.agents[d.Candidate] = a
	case !a.stopped:
		return
	}
	a.stopped, a.owns = false, false
	w.beat(a)
}

// liveness has a candidate's agent stop, or start again.
func (w *world) liveness(name string, alive bool) error {
	a := w.alive.agents[name]
	if a == nil {
		return fmt.Errorf("no candidate %s has joined%s", name, nearest.Hint(name, slices.Sorted(maps.Keys(w.alive.agents))))
	}
	was := a.silent
	if a.silent = !alive; was && alive {
		a.stopped, a.owns = false, false
		w.beat(a)
	}
	return nil
}

// beat renews an agent's key, by get and update. One that finds a tombstone, or another's key, stops; one that is
// started takes the key over. Either way, and where its lease has run out meanwhile, it leads nothing any more.
func (w *world) beat(a *agent) {
	if a.silent || a.stopped {
		return
	}
	key := w.alive.keys[a.candidate]
	taken := key.Revision != 0 && (key.Incarnation != a.incarnation || key.Until != 0)
	if taken || !w.leased(a.process) {
		w.alive.stops(a.process)
	}
	if taken && a.owns {
		a.stopped = true
		return
	}
	a.owns = true
	lease := w.lease()
	w.alive.put(projector.Beat{Group: group, Candidate: a.candidate, Incarnation: a.incarnation, Lease: time.Duration(lease.Duration)})
	w.alive.leases[a.process] = w.now.Add(time.Duration(lease.Duration))
	a.next = w.now.Add(time.Duration(lease.RenewEvery))
}

func (l *alive) put(b projector.Beat) {
	l.revision++
	b.Revision = l.revision
	l.keys[b.Candidate] = b
}

// stops has a process lead nothing.
func (l *alive) stops(p process) {
	maps.DeleteFunc(l.claims, func(_ claim, by process) bool { return by == p })
}

// leased says whether a process may believe that its lease runs.
func (w *world) leased(p process) bool {
	return w.alive.leases[p].After(w.now)
}

// beats has every agent beat whose time has come.
func (w *world) beats() {
	for _, name := range sortedKeys(w.alive.agents) {
		if a := w.alive.agents[name]; !a.next.After(w.now) {
			w.beat(a)
		}
	}
}

// nextBeat is when an agent beats next, zero where none does.
func (w *world) nextBeat() (at time.Time) {
	for _, a := range w.alive.agents {
		if !a.silent && !a.stopped && (at.IsZero() || a.next.Before(at)) {
			at = a.next
		}
	}
	return at
}

// tell tells an instance what liveness keys show that it has not seen, the newest of each.
func (w *world) tell(i *instance) (news bool) {
	for _, name := range sortedKeys(w.alive.keys) {
		if b := w.alive.keys[name]; b.Revision > i.heard[name] && name != w.alive.muffled {
			i.heard[name] = b.Revision
			i.core.Heard(b, w.own())
			news = true
		}
	}
	return news
}

// expire writes a tombstone, unless the key has changed.
func (w *world) expire(i *instance, e projector.Expiry) {
	name := e.Holder.Candidate
	written := w.alive.keys[name].Revision == e.Revision
	if written {
		w.alive.put(projector.Beat{Group: group, Candidate: name, Incarnation: e.Holder.Incarnation, Until: e.Until, Lease: e.Lease})
	}
	i.core.Expired(e, written, w.own())
}

// lose loses the bucket; every instance watches the new one. An agent that finds no key makes it again.
func (w *world) lose() {
	clear(w.alive.keys)
	for _, i := range w.instances {
		clear(i.heard)
		i.core.Listen()
	}
}
