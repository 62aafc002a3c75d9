package view

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// yields applies the rules that have a holder give leadership up: an operator's order, and its health. While a yield
// is open there is no other, and a paused group has none.
func (d *decision) yields() {
	t := d.c.Term
	if t == nil || t.Yield != nil || d.g.Paused {
		return
	}
	if order := d.c.handover().Transfer; order != nil {
		d.transfer(order)
	}
	if d.data == nil && !t.Forced {
		d.unfit()
	}
}

// transfer is row 10. An order that can't be carried out at this moment is passed over; the fold drops it.
func (d *decision) transfer(order *Transfer) {
	if d.g.refuse(d.c, order.To, order.Force, d.now) != "" {
		return
	}
	to := order.To
	if to == "" {
		to = d.best()
	}
	if to != "" {
		d.tell(to, order.Reason, order.Sequence)
	}
}

// unfit is rows 1 to 3.
func (d *decision) unfit() {
	t := d.c.Term
	if !t.Unfit && !d.failing() {
		return
	}
	to := d.best()
	switch {
	case t.Unfit && to != "":
		d.tell(to, t.Candidate+"'s last health check had failed when it was granted leadership", d.failures(1)...)
	case !d.failing():
	case to != "" && d.yieldsLeft():
		d.tell(to, t.Candidate+" fails its health checks: "+d.failure(), d.failures(d.g.Policy.Health.FailureThreshold)...)
	case t.Held == 0:
		d.hold(d.blocked(to))
	}
}

func (d *decision) tell(to, reason string, cause ...uint64) {
	d.data = []journal.Data{&journal.Yield{Session: d.c.Term.Session, Reason: reason, To: to}}
	d.cause = cause
}

// hold has the holder stay, with an alert for a spell that has none yet.
func (d *decision) hold(reason string) {
	d.data = []journal.Data{&journal.Hold{Session: d.c.Term.Session, Reason: reason}}
	if !active(d.c.Alerts, yieldBlocked) {
		d.data = append(d.data, &journal.Alert{Name: yieldBlocked, Reason: reason})
	}
	d.cause = d.failures(d.g.Policy.Health.FailureThreshold)
}

// best is who is fit to take over; the component is looked at again when time alone makes somebody fit.
func (d *decision) best() string {
	for _, k := range d.c.joined {
		if k.Name == d.c.Term.Candidate {
			continue
		}
		if at, ok := d.g.fitFrom(d.c, k); ok {
			d.passed(at)
		}
	}
	return d.g.bestOf(d.c, d.now, d.heard)
}

// failing says whether the holder counts as failing.
func (d *decision) failing() bool {
	k := d.g.Candidates[d.c.Term.Candidate]
	if k == nil {
		return false
	}
	return k.Rank == "fail" || k.Silent != nil && d.g.Policy.Health.SilentLeader == policy.Yield && !active(d.g.Alerts, observersSilent)
}

// failures are the records that show the holder failing: those of every check that failed so many times in a row, or
// the stale.
func (d *decision) failures(times int) []uint64 {
	k := d.g.Candidates[d.c.Term.Candidate]
	all := []uint64{d.c.Epoch}
	if k.Silent != nil {
		all = append(all, k.Silent.Sequence)
	}
	for _, c := range k.Checks {
		if c.Fails >= times {
			all = append(all, c.Failed...)
		}
	}
	slices.Sort(all)
	return all
}

// failure is what the holder's failing checks say.
func (d *decision) failure() string {
	k := d.g.Candidates[d.c.Term.Candidate]
	for _, name := range slices.Sorted(maps.Keys(k.Checks)) {
		if c := k.Checks[name]; c.Fails >= d.g.Policy.Health.FailureThreshold {
			return fmt.Sprintf("%s failed %d times in a row: %s", name, c.Fails, c.Reason)
		}
	}
	return "its agent is silent"
}

// yieldsLeft says whether the component may be moved once more within the window.
func (d *decision) yieldsLeft() bool {
	told := d.c.handover().Yields
	n := len(told) - d.g.Policy.Health.MaxYields
	return n < 0 || d.passed(told[n].time().Add(time.Duration(d.g.Policy.Health.Window)))
}

func (d *decision) blocked(to string) string {
	if to == "" {
		return "nobody fit is there to take over"
	}
	return fmt.Sprintf("rate: %d yields within %s", d.g.Policy.Health.MaxYields, d.g.Policy.Health.Window)
}

// unblocked ends YieldBlocked when its spell is over: the holder passes, has been told to yield, or leads no more.
func (d *decision) unblocked() {
	t := d.c.Term
	if t == nil || t.Yield != nil || t.Forced || !d.failing() {
		d.ended(yieldBlocked, "the leader does not fail any more, was told to yield, or leads no more", 0)
	}
}
