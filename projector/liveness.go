package projector

import (
	"container/heap"
	"slices"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// Beat is what a candidate's liveness key shows at one revision: a renewal, or a tombstone.
type Beat struct {
	Group, Candidate string
	Incarnation      string
	Revision         uint64        // of the key; it rises with every change
	Lease            time.Duration // that the candidate counts on with this renewal; of a tombstone, with the last one before
	Until            uint64        // of a tombstone; 0: a renewal
}

// Expiry asks for a tombstone in the place of a holder's liveness key, on condition that the key still has this
// revision; 0: that there is none. A holder that has renewed its lease meanwhile keeps it, one that has not finds the
// tombstone when it tries, and stops. Until goes into the tombstone: the terms granted to the holder up to this record
// end with it, and no newer one.
type Expiry struct {
	Holder   view.Holder
	Revision uint64
	Until    uint64
	Lease    time.Duration // that the holder may count on, for whoever finds the tombstone
}

// liveness is what this instance has seen of the candidates' liveness keys since it began to act. Its times are those of
// the instance's own clock, which no server's clock can move: of leases only the lengths are compared between machines.
type liveness struct {
	view     *view.View
	watching bool

	keys    map[candidate]Beat       // the newest of each; they outlive the time in which we act
	longest map[string]time.Duration // lease that there ever was, by managed group; so do they

	lives    map[candidate][]*life
	due      deadlines
	next     []*life       // to be looked at with the next look
	seen     view.Liveness // what decisions are told
	expiries []Expiry      // to be handed out
}

// candidate names one whose liveness key is watched.
type candidate struct{ group, name string }

// life is one incarnation of a candidate that has joined, or holds a managed term.
type life struct {
	holder view.Holder
	moved  time.Duration // when it may have renewed its lease last
	lease  time.Duration // that it counts on, by its newest renewal that was seen; the policy may have another one by now
	quiet  bool          // that is a lease ago
	spoke  time.Duration // when it gave any sign of life last
	held   bool          // the key was seen to be its own
	fence  *fence        // nil: it may renew its lease
	asked  *Expiry       // not answered yet
	barred bool          // the key is known to have changed, and not known how

	moves, speaks, queued bool // what begins with the next look

	at    time.Duration // when to look at it again; never: not before something happens
	index int           // in deadlines; -1: it is not there
}

const never = time.Duration(-1)

// fence is the end of a life's right to renew its lease: a lease after at, what was granted to it until that record is
// over.
type fence struct {
	until uint64
	at    time.Duration
}

func newLiveness(v *view.View) *liveness {
	return &liveness{view: v, keys: map[candidate]Beat{}, longest: map[string]time.Duration{}}
}

// forget forgets what is only of interest while the core acts.
func (l *liveness) forget() {
	l.lives, l.due, l.next, l.expiries = map[candidate][]*life{}, nil, nil, nil
	l.seen = view.Liveness{
		Stale: map[view.Holder]time.Time{}, Lapsed: map[view.Holder]time.Time{}, Ended: map[view.Holder]view.Ending{},
	}
}

// begin has the time of everybody begin with the next look, as after a takeover.
func (l *liveness) begin() {
	for _, g := range l.view.Groups() {
		l.attend(g)
	}
}

// attend begins to look after a group's candidates, and looks anew at those that it looks after.
func (l *liveness) attend(g *view.Group) {
	if !l.watching {
		return
	}
	for _, k := range g.Candidates {
		if k.Joined != 0 {
			l.life(g, k.Name, k.Incarnation)
		}
	}
	if g.Policy.Election == policy.Managed {
		for _, c := range g.Components {
			if t := c.Term; t != nil {
				l.life(g, t.Candidate, t.Incarnation)
			}
		}
	}
	for c, all := range l.lives {
		if c.group == g.Name {
			for _, x := range all {
				l.soon(x)
			}
		}
	}
}

// life is that of an incarnation, which may be new.
func (l *liveness) life(g *view.Group, name, incarnation string) *life {
	key := candidate{g.Name, name}
	for _, x := range l.lives[key] {
		if x.holder.Incarnation == incarnation {
			return x
		}
	}
	beat, ok := l.keys[key]
	x := &life{
		holder: view.Holder{Group: g.Name, Candidate: name, Incarnation: incarnation}, moves: true, speaks: true, at: never, index: -1,
	}
	if ok && beat.Incarnation == incarnation {
		x.held, x.lease = true, beat.Lease
	}
	l.lives[key] = append(l.lives[key], x)
	l.soon(x)
	return x
}

// soon has a life looked at with the next look.
func (l *liveness) soon(x *life) {
	if !x.queued {
		x.queued = true
		l.next = append(l.next, x)
	}
}

// rule takes note of a group's policy, whether we act or not.
func (l *liveness) rule(g *view.Group) {
	if g.Policy.Election == policy.Managed {
		l.longest[g.Name] = max(l.longest[g.Name], time.Duration(g.Policy.Lease.Duration))
	}
}

// react takes note of what a record says of its candidates' lives.
func (l *liveness) react(r *journal.Record, result view.Result) {
	g := result.Group
	if !l.watching || result.Verdict != view.Applied {
		return
	}
	switch d := r.Event.Data.(type) {
	case *journal.Join:
		l.spoke(g, d.Candidate, d.Incarnation)
	case *journal.Health:
		l.spoke(g, d.Candidate, d.Incarnation)
	case *journal.Grant:
		l.term(g, result.Component.Term).moves = true // with a full lease
	case *journal.Yield:
		l.term(g, result.Component.Term)
	case *journal.Policy:
		l.attend(g)
	}
}

// term looks at the life of a term's holder.
func (l *liveness) term(g *view.Group, t *view.Term) *life {
	x := l.life(g, t.Candidate, t.Incarnation)
	l.soon(x)
	return x
}

// spoke notes that a candidate joined or reported. Of one that leads it is no renewal: that takes its key.
func (l *liveness) spoke(g *view.Group, name, incarnation string) {
	k := g.Candidates[name]
	if k == nil || k.Joined == 0 || k.Incarnation != incarnation {
		return
	}
	x := l.life(g, name, incarnation)
	x.speaks = true
	x.moves = x.moves || l.newest(x) == 0
	l.soon(x)
	if _, ended := l.seen.Ended[x.holder]; ended {
		l.view.Attend(g.Name, name)
	}
}

// newest is the epoch of the newest managed term that a life holds and has not released, 0 where it holds none.
func (l *liveness) newest(x *life) (epoch uint64) {
	g := l.view.Group(x.holder.Group)
	if g.Policy.Election != policy.Managed {
		return 0
	}
	for _, c := range g.LedBy(x.holder.Candidate) {
		if t := c.Term; t.Incarnation == x.holder.Incarnation && !t.Released {
			epoch = max(epoch, t.Epoch)
		}
	}
	return epoch
}

// listen has everything begin anew: the keys are watched from here on, and what was known of them may be wrong. A lease
// that was found to be over stays so.
func (l *liveness) listen() {
	l.watching = true
	clear(l.keys)
	for _, all := range l.lives {
		for _, x := range all {
			x.moves, x.speaks, x.held, x.fence, x.asked, x.barred = true, true, false, nil, nil, false
			l.soon(x)
		}
	}
}

// deaf has nobody fall silent until listen is called.
func (l *liveness) deaf() { l.watching, l.expiries = false, nil }

// heard takes note of a key's newest revision.
func (l *liveness) heard(b Beat, at time.Duration) {
	key := candidate{b.Group, b.Candidate}
	if b.Revision <= l.keys[key].Revision {
		return
	}
	l.keys[key] = b
	for _, x := range l.lives[key] {
		own := x.holder.Incarnation == b.Incarnation
		if x.barred || own && (!x.held || x.lease != b.Lease) {
			l.soon(x) // a tombstone can be asked for, or the lease ends at another time
		}
		x.barred = false
		if own {
			x.lease = b.Lease
		}
		switch {
		case own && b.Until == 0:
			l.renewed(x, at)
		case own:
			l.fenceOff(x, fence{b.Until, at})
		case x.held: // whose key was taken over finds another's, and stops
			l.fenceOff(x, fence{l.view.Sequence(), at})
		}
		x.held = x.held || own
	}
}

// renewed notes a sign of life.
func (l *liveness) renewed(x *life, at time.Duration) {
	x.moved, x.spoke, x.moves, x.speaks, x.quiet = at, at, false, false, false
	_, lapsed := l.seen.Lapsed[x.holder]
	_, stale := l.seen.Stale[x.holder]
	if lapsed || stale {
		l.soon(x)
	}
}

// fenceOff notes that a life can't renew its lease any more. What ends its terms already is not put off by it.
func (l *liveness) fenceOff(x *life, f fence) {
	switch {
	case x.fence == nil, !x.fenced(l.newest(x)):
		x.fence = &f
	case x.fence.until == f.until:
		x.fence.at = min(x.fence.at, f.at)
	}
	l.soon(x)
}

// answered takes note of what came of a request for a tombstone.
func (l *liveness) answered(e Expiry, written bool, at time.Duration) {
	key := candidate{e.Holder.Group, e.Holder.Candidate}
	for _, x := range l.lives[key] {
		if x.asked == nil || *x.asked != e {
			continue
		}
		x.asked = nil
		if written {
			l.fenceOff(x, fence{e.Until, x.since(at)})
			continue
		}
		x.barred = l.keys[key].Revision == e.Revision
		l.soon(x)
	}
}

// fenced says whether a term of a life is over, or will be.
func (x *life) fenced(epoch uint64) bool { return x.fence != nil && x.fence.until >= epoch }

// since is from when on the lease of a life runs that was just kept from renewing it: one that has not for a lease has
// none.
func (x *life) since(at time.Duration) time.Duration {
	if x.quiet {
		return x.moved
	}
	return at
}

// look brings what decisions are told up to date, and says when to look again; never, unless something happens.
func (l *liveness) look(now time.Time, at time.Duration) time.Duration {
	if !l.watching {
		return never
	}
	next := l.next
	l.next = nil
	for _, x := range next {
		if x.moves {
			x.moved = at
		}
		if x.speaks {
			x.spoke = at
		}
		x.moves, x.speaks, x.queued = false, false, false
		l.inspect(x, now, at)
	}
	for len(l.due) > 0 && l.due[0].at <= at {
		l.inspect(l.due[0], now, at)
	}
	if len(l.due) == 0 {
		return never
	}
	return l.due[0].at
}

// inspect says what is to be said of a life, and when to look at it again: now and then in any case, so that one which
// takes no part any more is forgotten.
func (l *liveness) inspect(x *life, now time.Time, at time.Duration) {
	x.at = never
	if g := l.view.Group(x.holder.Group); l.concerns(g, x) {
		l.inspectLease(g, x, now, at)
		l.inspectFence(g, x, now, at)
		l.inspectSilence(g, x, now, at)
	} else {
		l.drop(x)
	}
	l.due.set(x)
}

// concerns says whether a life has joined, or holds a term.
func (l *liveness) concerns(g *view.Group, x *life) bool {
	k := g.Candidates[x.holder.Candidate]
	return k != nil && k.Joined != 0 && k.Incarnation == x.holder.Incarnation || l.newest(x) != 0
}

func (l *liveness) drop(x *life) {
	key := candidate{x.holder.Group, x.holder.Candidate}
	l.lives[key] = slices.DeleteFunc(l.lives[key], func(other *life) bool { return other == x })
	if len(l.lives[key]) == 0 {
		delete(l.lives, key)
	}
	delete(l.seen.Stale, x.holder)
	delete(l.seen.Lapsed, x.holder)
	delete(l.seen.Ended, x.holder)
}

// inspectLease says whether a life has renewed its lease of late, and sees to it that it can't any more where it holds
// a term that somebody else must have.
func (l *liveness) inspectLease(g *view.Group, x *life, now time.Time, at time.Duration) {
	if g.Policy.Election != policy.Managed {
		return
	}
	end := x.moved + l.lease(g, x)
	if x.quiet = end <= at; !x.quiet {
		x.wake(end)
	}
	l.mark(l.seen.Lapsed, x, x.quiet || l.lost(x), now)
	if x.quiet || l.overstays(g, x, now, at) {
		l.expire(g, x, at)
	}
}

// lease is how long a life may lead after a renewal: as its group's policy says, or longer where it has renewed last before
// that was shortened. Of one whose renewals were not seen nobody knows which policy they were under.
func (l *liveness) lease(g *view.Group, x *life) time.Duration {
	known := time.Duration(g.Policy.Lease.Duration)
	if !x.held {
		return max(known, l.longest[g.Name])
	}
	return max(known, x.lease)
}

// lost says whether a life's key was taken from it.
func (l *liveness) lost(x *life) bool {
	key := l.keys[candidate{x.holder.Group, x.holder.Candidate}]
	if key.Incarnation == x.holder.Incarnation {
		return key.Until != 0
	}
	return x.held
}

// overstays says whether a life was told to yield and has not released within the time that it has for it.
func (l *liveness) overstays(g *view.Group, x *life, now time.Time, at time.Duration) bool {
	for _, c := range g.LedBy(x.holder.Candidate) {
		t := c.Term
		if t.Yield == nil || t.Released || t.Incarnation != x.holder.Incarnation || x.fenced(t.Epoch) {
			continue
		}
		left := t.Yield.Since.Add(time.Duration(g.Policy.Lease.ReleaseWithin)).Sub(now)
		if left <= 0 {
			return true
		}
		x.wake(at + left)
	}
	return false
}

// expire keeps a life that holds a term from renewing its lease.
func (l *liveness) expire(g *view.Group, x *life, at time.Duration) {
	held := l.newest(x)
	if held == 0 || x.fenced(held) || x.asked != nil || x.barred {
		return
	}
	key := l.keys[candidate{x.holder.Group, x.holder.Candidate}]
	if key.Revision != 0 && replaced(g, x, key) {
		x.fence = &fence{l.view.Sequence(), x.since(at)}
		return
	}
	if !x.quiet && key.Incarnation != x.holder.Incarnation {
		return // it may hold a revision of a bucket that was lost, which must not be taken for the tombstone's
	}
	x.asked = &Expiry{Holder: x.holder, Revision: key.Revision, Until: l.view.Sequence(), Lease: l.lease(g, x)}
	l.expiries = append(l.expiries, *x.asked)
}

// replaced says whether the key is that of an incarnation which came after this one: it took it from this one, or joined in
// its place. Any other may be an older one's, which this one may still take over.
func replaced(g *view.Group, x *life, key Beat) bool {
	k := g.Candidates[x.holder.Candidate]
	return key.Incarnation != x.holder.Incarnation && (x.held || k != nil && k.Incarnation == key.Incarnation)
}

// inspectFence ends the terms of a life that can't believe any more that it leads.
func (l *liveness) inspectFence(g *view.Group, x *life, now time.Time, at time.Duration) {
	f := x.fence
	if f == nil || l.seen.Ended[x.holder].Sequence >= f.until {
		return
	}
	if end := f.at + l.lease(g, x); end > at {
		x.wake(end)
		return
	}
	l.seen.Ended[x.holder] = view.Ending{Since: now, Sequence: f.until}
	l.view.Attend(x.holder.Group, x.holder.Candidate)
}

// inspectSilence says whether a life has given no sign for the group's staleAfter.
func (l *liveness) inspectSilence(g *view.Group, x *life, now time.Time, at time.Duration) {
	end := x.spoke + time.Duration(g.Policy.Health.StaleAfter)
	if end > at {
		x.wake(end)
	}
	l.mark(l.seen.Stale, x, end <= at, now.Add(x.spoke-at))
	x.wake(at + time.Duration(g.Policy.Health.StaleAfter))
}

// mark notes since when something holds of a life, or that it does not.
func (l *liveness) mark(all map[view.Holder]time.Time, x *life, holds bool, since time.Time) {
	_, did := all[x.holder]
	switch {
	case holds == did:
		return
	case holds:
		all[x.holder] = since
	default:
		delete(all, x.holder)
	}
	l.view.Attend(x.holder.Group, x.holder.Candidate)
}

// wake has a life looked at no later than then.
func (x *life) wake(at time.Duration) {
	if x.at == never || at < x.at {
		x.at = at
	}
}

// deadlines is a heap of lives, by when to look at them.
type deadlines []*life

// set brings a life's place in line with its time.
func (d *deadlines) set(x *life) {
	switch {
	case x.index < 0 && x.at != never:
		heap.Push(d, x)
	case x.index >= 0 && x.at == never:
		heap.Remove(d, x.index)
	case x.index >= 0:
		heap.Fix(d, x.index)
	}
}

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at < d[j].at }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push is for container/heap.
func (d *deadlines) Push(x any) {
	added := x.(*life)
	added.index = len(*d)
	*d = append(*d, added)
}

// Pop is for container/heap.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	x.index = -1
	return x
}
