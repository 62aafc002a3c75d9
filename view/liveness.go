package view

import (
	"time"

	"github.com/leadership-journal/journald/policy"
)

// Holder names one life of a candidate, which is what a lease belongs to.
type Holder struct {
	Group, Candidate, Incarnation string
}

// Liveness is what a projector has itself seen of the candidates' liveness keys, or rather not seen, since it took
// over. It stands in no record, only what is decided from it does. The zero Liveness is that of a projector which has
// just begun to watch: nobody is silent yet. Its maps are only read.
type Liveness struct {
	Stale  map[Holder]time.Time // it has not moved its key, joined or reported for the group's staleAfter; since when
	Lapsed map[Holder]time.Time // the key has not moved for a lease, or is not the holder's any more; since when that is so
	Ended  map[Holder]Ending    // the lease can't be renewed any more, and has run out
}

// Ending is the end of an incarnation's lease. It is for good: an incarnation that is heard again leads nothing that it
// led before.
type Ending struct {
	Since    time.Time // on the log's clock
	Sequence uint64    // the terms granted up to this record have ended with it
}

// holder names the life of a candidate that has a term.
func (t *Term) holder(g *Group) Holder { return Holder{g.Name, t.Candidate, t.Incarnation} }

// holder names the present life of a candidate.
func (k *Candidate) holder(g *Group) Holder { return Holder{g.Name, k.Name, k.Incarnation} }

// leaseEnded says whether the open term's holder can't believe any more that it leads. Only a managed group's leaders
// hold a lease.
func (d *decision) leaseEnded() bool {
	t := d.c.Term
	e, ok := d.live.Ended[t.holder(d.g)]
	return ok && t.Epoch <= e.Sequence
}

// lapsedSince is since when the holder of the open term has not renewed its lease, zero where it does.
func (d *decision) lapsedSince() time.Time {
	if d.g.Policy.Election != policy.Managed {
		return time.Time{}
	}
	if d.leaseEnded() {
		return d.live.Ended[d.c.Term.holder(d.g)].Since
	}
	return d.live.Lapsed[d.c.Term.holder(d.g)]
}

// heard says whether a candidate has given a sign of life of late, which a managed election asks of whoever it chooses.
func (d *decision) heard(k *Candidate) bool {
	_, lapsed := d.live.Lapsed[k.holder(d.g)]
	return !lapsed || d.g.Policy.Election != policy.Managed
}

// Attend has everything looked at anew that a candidate leads or may lead, and its group, as when its liveness has
// changed.
func (v *View) Attend(group, candidate string) {
	g := v.groups[group]
	if g == nil {
		return
	}
	v.agenda.touch(g, nil)
	for _, c := range g.concernedBy(candidate) {
		v.agenda.touch(g, c)
	}
}
