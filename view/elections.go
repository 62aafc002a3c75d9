package view

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// elect applies the rules of a managed election: rows 11 to 15, and what row 7 says of it. It never ends a term but in
// the batch that begins the next one, unless nobody is there to lead. A paused group has no elections.
func (d *decision) elect() {
	if d.g.Policy.Election != policy.Managed || d.g.Paused {
		return
	}
	t := d.c.Term
	switch {
	case t == nil:
		d.fill()
	case t.Released && t.Yield != nil:
		d.handOver(yielded, t.Yield.Sequence, t.ReleasedBy)
	case t.Released:
		d.handOver(released, t.ReleasedBy)
	case d.leaseEnded() && t.Yield != nil:
		d.handOver(expired, t.Yield.Sequence)
	case d.leaseEnded():
		d.handOver(expired, t.Epoch)
	case !t.Confirmed && t.Yield == nil:
		d.moveOn()
	}
}

// fill is row 11.
func (d *decision) fill() {
	next := d.choose(d.eligible)
	if k := d.asked(d.c.handover().ForcedTo, true); k != nil {
		next = k
	}
	if next != nil {
		d.data, d.cause = []journal.Data{d.grantTo(next, d.c.LeaderlessSince)}, []uint64{next.Joined}
	}
}

// handOver is rows 12 to 14: the term of a holder that has stopped, or can't believe any more that it leads, is closed,
// and the next one begins.
func (d *decision) handOver(reason string, cause ...uint64) {
	next := d.successor()
	if next == nil && len(d.c.joined) > 0 {
		return // an open term that nobody leads is better than none: it says who led last
	}
	d.replace(reason, next)
	d.cause = cause
}

// moveOn is row 7: a holder that has not said where it is has not begun to lead, so that nobody has to wait for it.
// Whoever was tried in vain is not tried again.
func (d *decision) moveOn() {
	t := d.c.Term
	if !d.passed(t.Since.Add(time.Duration(d.g.Policy.ConfirmWithin))) {
		return
	}
	next := d.choose(func(k *Candidate) bool {
		return k.Name != t.Candidate && !k.fails() && !d.c.triedInVain(k) && d.eligible(k)
	})
	if next != nil {
		d.replace(confirmTimeout, next)
		d.cause = []uint64{t.Epoch}
	}
}

// replace ends the open term, and begins that of the next holder if there is one.
func (d *decision) replace(reason string, next *Candidate) {
	t := d.c.Term
	d.data = []journal.Data{
		&journal.Revoke{Session: t.Session, Candidate: t.Candidate, Reason: reason, Decision: &journal.Decision{}},
	}
	if next != nil {
		d.data = append(d.data, d.grantTo(next, t.Since))
	}
}

// successor is who takes over from the open term's holder: the one that it was told to yield to, else the best of the
// others, else the holder itself.
func (d *decision) successor() *Candidate {
	t := d.c.Term
	if y := t.Yield; y != nil && y.To != t.Candidate {
		if k := d.asked(y.To, y.Forced); k != nil {
			return k
		}
	}
	same := func(k *Candidate) bool { return k.Name == t.Candidate && k.Incarnation == t.Incarnation }
	next := d.choose(func(k *Candidate) bool { return !same(k) && d.eligible(k) })
	if next == nil {
		next = d.choose(func(k *Candidate) bool { return same(k) && d.spokeSince(k) && d.eligible(k) })
	}
	return next
}

// asked is the candidate that leadership was to be handed to, nil where it is not to be had any more. Force has it whether
// it is fit, or excluded, or not.
func (d *decision) asked(name string, force bool) *Candidate {
	k := d.g.Candidates[name]
	if k == nil || !k.mayLead(d.c) || !d.reachable(k) || !force && !d.g.fit(d.c, k, d.now) {
		return nil
	}
	return k
}

// spokeSince says whether a holder has joined or reported again since its lease ended, if it has.
func (d *decision) spokeSince(k *Candidate) bool {
	return k.Spoke > d.live.Ended[d.c.Term.holder(d.g)].Sequence
}

// eligible says whether a candidate may be chosen at all.
func (d *decision) eligible(k *Candidate) bool { return !k.Excluded && d.reachable(k) }

// reachable is row 15: whoever may be gone, or may still lead, is not chosen.
func (d *decision) reachable(k *Candidate) bool {
	return d.heard(k) && !k.mute() && d.passed(d.c.stoppedBy(d.g, k))
}

// choose is the best of those that may be chosen, by rank, then not held down, then priority, then join order; nil where
// there is none.
func (d *decision) choose(may func(*Candidate) bool) *Candidate {
	var best *Candidate
	for _, k := range d.c.joined {
		if may(k) && (best == nil || d.better(k, best)) {
			best = k
		}
	}
	return best
}

func (d *decision) better(a, b *Candidate) bool {
	if c := cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(d.held(a), d.held(b))); c != 0 {
		return c < 0
	}
	return a.before(b)
}

// place is a candidate's in an election: pass, then unknown, then failing.
func (k *Candidate) place() int {
	switch {
	case k.fails():
		return 2
	case k.Rank == "pass":
		return 0
	}
	return 1
}

// held is 1 for a candidate that is held down.
func (d *decision) held(k *Candidate) int {
	h := k.HeldDown
	if h == nil {
		return 0
	}
	over := !h.Since.Add(time.Duration(d.g.Policy.Health.HoldDown)).After(d.now)
	if over && (h.Passed || h.ByTime) {
		return 0
	}
	return 1
}

// triedInVain says whether a candidate in its present life was granted the component and did not confirm, since somebody
// last did.
func (c *Component) triedInVain(k *Candidate) bool {
	for _, t := range c.handover().InVain {
		if t.Candidate == k.Name && t.Incarnation == k.Incarnation {
			return true
		}
	}
	return false
}

// grantTo is a grant of a session that follows from what led to it, so that the same decision made twice is one. since
// tells apart what two journals say.
func (d *decision) grantTo(k *Candidate, since time.Time) *journal.Grant {
	seed := fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d\x00%d",
		d.g.Name, d.c.Name, k.Name, k.Incarnation, d.g.Version, since.UnixNano())
	return &journal.Grant{Candidate: k.Name, Session: uuid(seed), Decision: &journal.Decision{}}
}

// uuid is one of version 8 (RFC 9562, 5.8), since layouts such as Flink's take nothing else for a session.
func uuid(seed []byte) string {
	b := sha256.Sum256(seed)
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// soleUnhealthy is the alert of row 11.
func (d *decision) soleUnhealthy() {
	if t := d.c.Term; t != nil && t.Sole {
		d.begun(soleUnhealthy, t.Epoch, func() string { return t.Candidate + " fails, and was elected since nobody better was there" })
		return
	}
	d.ended(soleUnhealthy, "the leader passes, or leads no more", 0)
}
