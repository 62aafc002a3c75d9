package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// Candidate is a process that may lead.
type Candidate struct {
	Name          string            `json:"name"`
	Incarnation   string            `json:"incarnation,omitzero"`
	Joined        uint64            `json:"joined,omitzero"`     // sequence of the join; 0 while it takes no part
	JoinedAnew    uint64            `json:"joinedAnew,omitzero"` // sequence of the newest join
	Heard         uint64            `json:"heard,omitzero"`      // sequence of the newest record about it
	Left          bool              `json:"left,omitzero"`       // it said so itself
	Components    []string          `json:"components,omitempty"`
	Address       string            `json:"address,omitzero"`
	Priority      int               `json:"priority,omitzero"`
	Labels        map[string]string `json:"labels,omitempty"`
	Excluded      bool              `json:"excluded,omitzero"`
	ExcludedUntil time.Time         `json:"excludedUntil,omitzero"`

	Rank     string            `json:"rank,omitzero"` // pass, fail, or empty for unknown
	Checks   map[string]*Check `json:"checks,omitempty"`
	Reported time.Time         `json:"reported,omitzero"` // record time of the last counted report
	Silent   *Silence          `json:"silent,omitzero"`   // a stale and nothing since
	HeldDown *HoldDown         `json:"heldDown,omitzero"`
	Spoke    uint64            `json:"spoke,omitzero"`   // sequence of its newest join or counted report
	Expired  uint64            `json:"expired,omitzero"` // sequence that ended a managed term of it, whose lease had lapsed

	failed bool // some check's last run; derived

	Early    []Early    `json:"early,omitempty"`    // reports of incarnations that have not joined
	Replaced []Replaced `json:"replaced,omitempty"` // incarnations that are over
}

// Check is what one health check of a candidate said last.
type Check struct {
	Run    uint64   `json:"run"`
	Status string   `json:"status,omitzero"` // empty after a stale
	Reason string   `json:"reason,omitzero"`
	Fails  int      `json:"fails,omitzero"`   // in a row
	Failed []uint64 `json:"failed,omitempty"` // sequences of the newest of these
	Passes int      `json:"passes,omitzero"`  // in a row
}

// Silence is that of a candidate's agent.
type Silence struct {
	Sequence uint64    `json:"sequence"` // of the stale
	Since    time.Time `json:"since"`    // its record's time
}

// HoldDown keeps a candidate that yielded from being chosen.
type HoldDown struct {
	Since  time.Time `json:"since"`
	Passed bool      `json:"passed,omitzero"` // it has passed again
	ByTime bool      `json:"byTime,omitzero"` // time alone ends it: it was moved by an operator
}

// Early holds the reports of an incarnation until it joins.
type Early struct {
	Incarnation string            `json:"incarnation"`
	Rank        string            `json:"rank,omitzero"`
	Checks      map[string]*Check `json:"checks"`
	Reported    time.Time         `json:"reported"`
}

// Replaced is an incarnation that a newer one took the place of.
type Replaced struct {
	Incarnation string `json:"incarnation"`
	Run         uint64 `json:"run,omitzero"` // its highest run
}

// candidate is the one of that name, which may be new.
func (f *fold) candidate(name string) *Candidate {
	k := f.g.Candidates[name]
	if k == nil {
		f.g.forgetStranger()
		k = &Candidate{Name: name}
		f.g.Candidates[name] = k
	}
	return k
}

// forgetStranger makes room for one more candidate that takes no part: the one that was not heard of for longest goes.
// Who leads or is excluded is remembered.
func (g *Group) forgetStranger() {
	if len(g.Candidates)-g.roster.joined < maxStrangers {
		return
	}
	var oldest *Candidate
	for _, k := range g.Candidates {
		if k.Joined == 0 && !k.Excluded && g.roster.leads[k.Name] == nil && (oldest == nil || k.Heard < oldest.Heard) {
			oldest = k
		}
	}
	if oldest != nil {
		delete(g.Candidates, oldest.Name)
	}
}

func (f *fold) join(d *journal.Join) Result {
	k := f.candidate(d.Candidate)
	if k.replaced(d.Incarnation) != nil {
		return f.result(Stale, "the incarnation was replaced by a newer one")
	}
	f.concern(k)
	f.self = active(f.g.Alerts, observersSilent)
	if k.Joined != 0 {
		f.g.strike(k)
	}
	if k.Incarnation != d.Incarnation {
		k.renew(d.Incarnation)
	}
	if k.Joined == 0 {
		k.Joined = f.r.Sequence
	}
	k.JoinedAnew, k.Spoke, k.Heard, k.Left = f.r.Sequence, f.r.Sequence, f.r.Sequence, false
	k.Components, k.Address, k.Priority, k.Labels = slices.Clone(d.Components), d.Address, d.Priority, d.Labels
	f.g.enlist(k)
	f.concern(k)
	return f.applied()
}

// renew begins an incarnation: what was known of the one before does not count any more.
func (k *Candidate) renew(incarnation string) {
	if k.Incarnation != "" {
		k.Replaced = newest(append(k.Replaced, Replaced{k.Incarnation, k.highestRun()}), maxReplaced)
	}
	k.Incarnation, k.Joined = incarnation, 0
	k.Rank, k.Checks, k.Reported, k.Silent, k.HeldDown = "", nil, time.Time{}, nil, nil
	if i := k.early(incarnation); i >= 0 {
		k.Rank, k.Checks, k.Reported = k.Early[i].Rank, k.Early[i].Checks, k.Early[i].Reported
		k.Early = slices.Delete(k.Early, i, i+1)
	}
	k.recount()
}

func (f *fold) leave(d *journal.Leave) Result {
	k := f.g.Candidates[d.Candidate]
	if k == nil || k.Incarnation != d.Incarnation || k.Joined == 0 {
		return f.result(Stale, "that incarnation has not joined")
	}
	f.g.strike(k)
	k.Joined, k.Left, k.Heard = 0, true, f.r.Sequence
	f.letGo(k)
	f.concern(k)
	f.self = true
	return f.applied()
}

// letGo has a candidate that leaves a managed group release what it leads.
func (f *fold) letGo(k *Candidate) {
	if f.g.Policy.Election != policy.Managed {
		return
	}
	for _, c := range f.g.roster.by(k.Name) {
		if c.Term.Incarnation == k.Incarnation {
			c.Term.release(f.r.Sequence)
		}
	}
}

func (f *fold) health(d *journal.Health) Result {
	k := f.candidate(d.Candidate)
	if old := k.replaced(d.Incarnation); old != nil {
		if d.Run > old.Run {
			old.Run = d.Run
			f.anomaly(&f.g.Anomalies, "duplicate-identity",
				fmt.Sprintf("%s still reports as incarnation %s, which %s replaced", d.Candidate, d.Incarnation, k.Incarnation))
		}
		return f.result(Stale, "the incarnation was replaced by a newer one")
	}
	if k.Incarnation != d.Incarnation {
		return f.reportEarly(k, d)
	}
	was := k.standing()
	if why := f.run(&k.Checks, &k.Rank, d); why != "" {
		return f.result(Stale, why)
	}
	k.recount()
	f.self = k.Silent != nil || active(f.g.Alerts, observersSilent)
	k.Reported, k.Heard, k.Spoke, k.Silent = f.v.time, f.r.Sequence, f.r.Sequence, nil
	if d.Status == "pass" {
		f.passed(k)
	}
	if k.standing() != was {
		f.concern(k)
	}
	return f.applied()
}

// standing is what decisions read of a candidate's health.
type standing struct {
	rank                               string
	lastFailed, silent, heldDown, mute bool
}

func (k *Candidate) standing() standing {
	return standing{k.Rank, k.failed, k.Silent != nil, k.HeldDown != nil && !k.HeldDown.Passed, k.mute()}
}

// reportEarly keeps a report until its incarnation joins.
func (f *fold) reportEarly(k *Candidate, d *journal.Health) Result {
	i := k.early(d.Incarnation)
	if i < 0 {
		k.Early = newest(append(k.Early, Early{Incarnation: d.Incarnation}), maxStrays)
		i = len(k.Early) - 1
	}
	e := &k.Early[i]
	if why := f.run(&e.Checks, &e.Rank, d); why != "" {
		return f.result(Stale, why)
	}
	e.Reported, k.Heard = f.v.time, f.r.Sequence
	return f.noted()
}

// early is where the reports of an incarnation are kept, -1 where there are none.
func (k *Candidate) early(incarnation string) int {
	return slices.IndexFunc(k.Early, func(e Early) bool { return e.Incarnation == incarnation })
}

// run counts one run, or says why it does not count.
func (f *fold) run(checks *map[string]*Check, rank *string, d *journal.Health) (why string) {
	if *checks == nil {
		*checks = map[string]*Check{}
	}
	c := (*checks)[d.Check]
	if c == nil && len(*checks) == maxChecks {
		return fmt.Sprintf("the candidate has %d checks, which is all that are remembered", maxChecks)
	}
	if c == nil {
		c = &Check{}
		(*checks)[d.Check] = c
	}
	if d.Run <= c.Run {
		return "the run is not above the last one of that check"
	}
	c.Run, c.Status, c.Reason = d.Run, d.Status, d.Reason
	if d.Status == "pass" {
		c.Fails, c.Passes, c.Failed = 0, c.Passes+1, nil
	} else {
		c.Fails, c.Passes = c.Fails+1, 0
		c.Failed = newest(append(c.Failed, f.r.Sequence), min(f.g.Policy.Health.FailureThreshold, maxCauses))
	}
	*rank = f.rank(*rank, *checks)
	return ""
}

// rank is fail after enough failing runs of one check in a row, pass after enough passing runs of every check, and
// what it was in between.
func (f *fold) rank(was string, checks map[string]*Check) string {
	h, passing := f.g.Policy.Health, true
	for _, c := range checks {
		if c.Fails >= h.FailureThreshold {
			return "fail"
		}
		passing = passing && c.Passes >= h.SuccessThreshold
	}
	if passing {
		return "pass"
	}
	return was
}

// passed unmarks what waits for a candidate to pass.
func (f *fold) passed(k *Candidate) {
	passes := k.Rank == "pass"
	if k.HeldDown != nil && passes {
		k.HeldDown.Passed = true
	}
	for _, c := range f.g.roster.by(k.Name) {
		t := c.Term
		t.Unfit = t.Unfit && k.failed
		t.Forced = t.Forced && !passes
		t.Sole = t.Sole && (k.failed || !passes)
		if passes {
			t.Held = 0
		}
	}
}

func (f *fold) stale(d *journal.Stale) Result {
	if why := f.void(&d.Decision); why != "" {
		return f.result(Void, why)
	}
	k := f.g.Candidates[d.Candidate]
	if k == nil || k.Incarnation != d.Incarnation {
		return f.result(Stale, "that incarnation is not the newest")
	}
	if k.Silent != nil {
		return f.result(Duplicate, "")
	}
	k.Silent, k.Rank = &Silence{Sequence: f.r.Sequence, Since: f.v.time}, ""
	for _, c := range k.Checks {
		c.Status, c.Fails, c.Failed, c.Passes = "", 0, nil, 0
	}
	k.recount()
	f.concern(k)
	f.self = true
	return f.applied()
}

func (k *Candidate) replaced(incarnation string) *Replaced {
	for i := range k.Replaced {
		if k.Replaced[i].Incarnation == incarnation {
			return &k.Replaced[i]
		}
	}
	return nil
}

func (k *Candidate) highestRun() uint64 {
	var high uint64
	for _, c := range k.Checks {
		high = max(high, c.Run)
	}
	return high
}

// recount derives what the checks say together.
func (k *Candidate) recount() {
	k.failed = false
	for _, c := range k.Checks {
		k.failed = k.failed || c.Status == "fail"
	}
}
