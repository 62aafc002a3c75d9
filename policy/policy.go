// Package policy holds the rules that one group lives by: how its leader is elected, who has authority over what is
// published, when health costs a leader its term, and how long each silence is tolerated.
//
// A policy is data. It is written into the journal as a whole, so that a journal read years later is judged by the
// rules that held then; what a file leaves out is filled in by [Default] before it is written.
package policy

import (
	"errors"
	"fmt"
	"time"
)

// The words that a policy's fields accept.
const (
	External = "external" // the group's own elector chooses; journald records and publishes
	Managed  = "managed"  // journald chooses

	Journal = "journal" // what the journal says is what targets must show
	Backend = "backend" // the guarded system publishes by itself; journald only repairs erasures

	Retain = "retain" // a revoke leaves the leader info in place
	Clear  = "clear"  // a revoke takes the leader info of its own session down

	Restore = "restore" // an erased entry is put back
	Alert   = "alert"   // an erased entry raises PublishedDrift and nothing else

	Hold  = "hold"  // a silent leader keeps its term, with an alert
	Yield = "yield" // a silent leader counts as failing
)

// Policy is a group's whole policy. Every field has a value: the zero Policy is not valid, [Default] is.
type Policy struct {
	Election        string   `json:"election"`        // external or managed
	Authority       string   `json:"authority"`       // journal or backend
	OnRevoke        string   `json:"onRevoke"`        // retain or clear
	Health          Health   `json:"health"`          //
	ConfirmWithin   Duration `json:"confirmWithin"`   // from grant to first confirmation
	LeaderlessAfter Duration `json:"leaderlessAfter"` // without a term, until NoLeader
	Flapping        int      `json:"flapping"`        // terms in Health.Window that are still tolerated
	OnErase         OnErase  `json:"onErase"`         // guarded targets only
	GraceAfterErase Duration `json:"graceAfterErase"` // from an erasure to its repair
	Lease           Lease    `json:"lease"`           // managed election only
}

// Health says when a candidate counts as failing and what that may cost a leader.
type Health struct {
	Period           Duration `json:"period"`           // between two runs of a check
	FailureThreshold int      `json:"failureThreshold"` // failing runs of one check in a row
	SuccessThreshold int      `json:"successThreshold"` // passing runs of every check in a row
	StaleAfter       Duration `json:"staleAfter"`       // silence of an agent until it is stale
	HoldDown         Duration `json:"holdDown"`         // after a health yield, until chosen again
	MaxYields        int      `json:"maxYields"`        // health yields of a component in Window
	Window           Duration `json:"window"`           //
	SilentLeader     string   `json:"silentLeader"`     // hold or yield
}

// Lease bounds how long a managed leader may be out of reach.
type Lease struct {
	Duration      Duration `json:"duration"`      // a holder that did not renew for so long does not lead
	RenewEvery    Duration `json:"renewEvery"`    //
	ReleaseWithin Duration `json:"releaseWithin"` // from a yield to the holder's release
}

// Default is the built-in policy of v1. It is frozen: journals name no version of it, so a change would change what
// old journals mean.
func Default() Policy {
	return Policy{
		Election:  External,
		Authority: Journal,
		OnRevoke:  Retain,
		Health: Health{
			Period: seconds(30), FailureThreshold: 3, SuccessThreshold: 1, StaleAfter: seconds(90),
			HoldDown: seconds(60), MaxYields: 3, Window: seconds(600), SilentLeader: Hold,
		},
		ConfirmWithin:   seconds(60),
		LeaderlessAfter: seconds(30),
		Flapping:        5,
		OnErase:         OnErase{Default: Restore},
		GraceAfterErase: seconds(5),
		Lease:           Lease{Duration: seconds(15), RenewEvery: seconds(5), ReleaseWithin: seconds(15)},
	}
}

// Validate names every field that is out of its range, all at once.
func (p *Policy) Validate() error {
	return errors.Join(
		oneOf("election", p.Election, External, Managed),
		oneOf("authority", p.Authority, Journal, Backend),
		oneOf("onRevoke", p.OnRevoke, Retain, Clear),
		positive("confirmWithin", p.ConfirmWithin),
		positive("leaderlessAfter", p.LeaderlessAfter),
		positive("graceAfterErase", p.GraceAfterErase),
		atLeastOne("flapping", p.Flapping),
		p.Health.validate(),
		p.Lease.validate(),
		p.OnErase.validate(),
	)
}

func (h *Health) validate() error {
	return errors.Join(
		positive("health.period", h.Period),
		positive("health.staleAfter", h.StaleAfter),
		positive("health.holdDown", h.HoldDown),
		positive("health.window", h.Window),
		atLeastOne("health.failureThreshold", h.FailureThreshold),
		atLeastOne("health.successThreshold", h.SuccessThreshold),
		atLeastOne("health.maxYields", h.MaxYields),
		oneOf("health.silentLeader", h.SilentLeader, Hold, Yield),
	)
}

func (l *Lease) validate() error {
	errs := []error{
		positive("lease.duration", l.Duration),
		positive("lease.renewEvery", l.RenewEvery),
		positive("lease.releaseWithin", l.ReleaseWithin),
	}
	if l.RenewEvery >= l.Duration {
		errs = append(errs, fmt.Errorf("lease.renewEvery: %s is not shorter than lease.duration %s; "+
			"a lease that is renewed after it lapsed protects nothing", l.RenewEvery, l.Duration))
	}
	return errors.Join(errs...)
}

func oneOf(field, value string, words ...string) error {
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return fmt.Errorf("%s: %q is none of %q", field, value, words)
}

func positive(field string, d Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s: %s is not a positive duration; write it like 30s or 10m", field, d)
	}
	return nil
}

func atLeastOne(field string, n int) error {
	if n < 1 {
		return fmt.Errorf("%s: %d is less than 1", field, n)
	}
	return nil
}

func seconds(n int) Duration { return Duration(n) * Duration(time.Second) }
