package journal

import (
	"fmt"
	"strings"
)

// This file has the kind, the scope and the rules of each type of data.

func (*Join) Kind() string       { return "join" }
func (*Leave) Kind() string      { return "leave" }
func (*Grant) Kind() string      { return "grant" }
func (*Revoke) Kind() string     { return "revoke" }
func (*Confirm) Kind() string    { return "confirm" }
func (*Ready) Kind() string      { return "ready" }
func (*Release) Kind() string    { return "release" }
func (*Withdraw) Kind() string   { return "withdraw" }
func (*Retry) Kind() string      { return "retry" }
func (*Health) Kind() string     { return "health" }
func (*Watch) Kind() string      { return "watch" }
func (*Transfer) Kind() string   { return "transfer" }
func (*Exclude) Kind() string    { return "exclude" }
func (*Include) Kind() string    { return "include" }
func (*Pause) Kind() string      { return "pause" }
func (*Resume) Kind() string     { return "resume" }
func (*Policy) Kind() string     { return "policy" }
func (*Takeover) Kind() string   { return "takeover" }
func (*Push) Kind() string       { return "push" }
func (*Yield) Kind() string      { return "yield" }
func (*Hold) Kind() string       { return "hold" }
func (*Stale) Kind() string      { return "stale" }
func (*Alert) Kind() string      { return "alert" }
func (*Clear) Kind() string      { return "clear" }
func (*Checkpoint) Kind() string { return "checkpoint" }

func (*Join) scope() scope     { return groupScope }
func (*Leave) scope() scope    { return groupScope }
func (*Grant) scope() scope    { return componentScope }
func (*Revoke) scope() scope   { return componentScope }
func (*Confirm) scope() scope  { return componentScope }
func (*Ready) scope() scope    { return componentScope }
func (*Release) scope() scope  { return componentScope }
func (*Withdraw) scope() scope { return componentScope }
func (*Retry) scope() scope    { return componentScope }
func (*Health) scope() scope   { return groupScope }
func (d *Watch) scope() scope {
	if d.Gap && d.Entry == nil && d.Revision == 0 {
		return eitherScope
	}
	return componentScope
}
func (*Transfer) scope() scope   { return componentScope }
func (*Exclude) scope() scope    { return groupScope }
func (*Include) scope() scope    { return groupScope }
func (*Pause) scope() scope      { return groupScope }
func (*Resume) scope() scope     { return groupScope }
func (*Policy) scope() scope     { return groupScope }
func (*Takeover) scope() scope   { return allScope }
func (*Push) scope() scope       { return componentScope }
func (*Yield) scope() scope      { return componentScope }
func (*Hold) scope() scope       { return componentScope }
func (*Stale) scope() scope      { return groupScope }
func (*Alert) scope() scope      { return eitherScope }
func (*Clear) scope() scope      { return eitherScope }
func (*Checkpoint) scope() scope { return allScope }

func (d *Join) validate(c *checker) {
	c.candidate(d.Candidate)
	c.incarnation(d.Incarnation)
	c.address(d.Address, false)
	c.properties("labels", d.Labels)
	if d.Priority > maxSafe || d.Priority < -maxSafe {
		c.fail("priority", fmt.Sprintf("%d is beyond 2^53-1, the largest number that every JSON reader holds exactly", d.Priority))
	}
	if len(d.Components) == 0 {
		c.fail("components", "is missing; it lists the components that the candidate may lead")
	}
	c.components(d.Components)
}

func (d *Leave) validate(c *checker) {
	c.candidate(d.Candidate)
	c.incarnation(d.Incarnation)
	c.reason(d.Reason, false)
}

func (d *Grant) validate(c *checker) {
	c.candidate(d.Candidate)
	c.session(d.Session)
	if d.Lock != nil {
		c.line("lock.kind", d.Lock.Kind, 1, maxName)
		c.safe("lock.revision", d.Lock.Revision)
	}
	d.Decision.validate(c)
}

func (d *Revoke) validate(c *checker) {
	c.session(d.Session)
	c.optional("candidate", d.Candidate)
	c.reason(d.Reason, true)
	d.Decision.validate(c)
}

func (d *Confirm) validate(c *checker) {
	c.session(d.Session)
	c.candidate(d.Candidate)
	c.address(d.Address, true)
	c.properties("properties", d.Properties)
	c.positive("attempt", d.Attempt)
}

func (d *Ready) validate(c *checker) {
	c.session(d.Session)
	c.reason(d.Reason, false)
}

func (d *Release) validate(c *checker) {
	c.session(d.Session)
	c.reason(d.Reason, true)
}

func (d *Withdraw) validate(c *checker) {
	c.optional("session", d.Session)
	c.line("actor", d.Actor, 0, maxName)
	c.reason(d.Reason, true)
}

func (d *Retry) validate(c *checker) {
	c.session(d.Session)
	c.positive("attempt", d.Attempt)
	c.text("error", d.Error, 1, maxText)
	c.notNegative("after", d.After)
}

func (d *Health) validate(c *checker) {
	c.candidate(d.Candidate)
	c.incarnation(d.Incarnation)
	c.name("check", d.Check, printable)
	c.oneOf("status", d.Status, "pass", "fail")
	c.reason(d.Reason, false)
	c.positive("run", d.Run)
}

func (d *Watch) validate(c *checker) {
	c.name("target", d.Target, printable)
	c.safe("revision", d.Revision)
	c.safe("sequence", d.Sequence)
	// what stands in a target is somebody else's text: it is bounded, not judged
	c.length("holder", d.Holder, 0, maxText)
	c.list("participants", len(d.Participants))
	for i, s := range d.Participants {
		c.length(index("participants", i), s, 0, maxText)
	}
	if e := d.Entry; e != nil {
		c.length("entry.session", e.Session, 0, maxText)
		c.length("entry.candidate", e.Candidate, 0, maxText)
		c.bytes("entry.address", len(e.Address), maxAddress)
		c.properties("entry.properties", e.Properties)
	}
}

func (d *Transfer) validate(c *checker) {
	c.optional("to", d.To)
	c.order(d.Order)
}

func (d *Exclude) validate(c *checker) {
	c.candidate(d.Candidate)
	c.time("until", d.Until)
	c.order(d.Order)
}

func (d *Include) validate(c *checker) {
	c.candidate(d.Candidate)
	c.order(d.Order)
	d.Decision.validate(c)
}

func (d *Pause) validate(c *checker) {
	c.time("until", d.Until)
	c.order(d.Order)
}

func (d *Resume) validate(c *checker) {
	c.order(d.Order)
	d.Decision.validate(c)
}

func (d *Policy) validate(c *checker) {
	c.order(d.Order)
	d.Decision.validate(c)
	if err := d.Policy.Validate(); err != nil {
		c.fail("policy", cutAt(strings.ReplaceAll(err.Error(), "\n", "; "), maxText/4))
	}
	if d.Targets != nil {
		c.targets(*d.Targets)
	}
}

func (c *checker) targets(all []Target) {
	c.list("targets", len(all))
	seen := make(map[string]bool, len(all))
	for i := range all {
		t := &all[i]
		c.within(index("targets", i)+".", t.validate)
		if seen[t.Name] {
			c.fail(index("targets", i)+".name", quote(t.Name)+" names two targets")
		}
		seen[t.Name] = true
	}
}

func (d *Takeover) validate(c *checker) { c.line("instance", d.Instance, 1, maxName) }

func (d *Push) validate(c *checker) {
	c.name("target", d.Target, printable)
	c.positive("intent", d.Intent)
	if d.Attempt < 1 {
		c.fail("attempt", "is missing, or below 1; it counts from 1")
	}
	c.oneOf("outcome", d.Outcome, OK, Superseded, Failed, Unknown)
	c.safe("revision", d.Revision)
	c.text("error", d.Error, 0, maxText)
	c.notNegative("retryAfter", d.RetryAfter)
	d.Decision.validate(c)
}

func (d *Yield) validate(c *checker) {
	c.session(d.Session)
	c.reason(d.Reason, true)
	c.optional("to", d.To)
	d.Decision.validate(c)
}

func (d *Hold) validate(c *checker) {
	c.session(d.Session)
	c.reason(d.Reason, true)
	d.Decision.validate(c)
}

func (d *Stale) validate(c *checker) {
	c.candidate(d.Candidate)
	c.incarnation(d.Incarnation)
	if d.Since.IsZero() {
		c.fail("since", "is missing")
	}
	c.time("since", d.Since)
	d.Decision.validate(c)
}

func (d *Alert) validate(c *checker) {
	c.name("name", d.Name, printable)
	c.reason(d.Reason, true)
	d.Decision.validate(c)
}

func (d *Clear) validate(c *checker) {
	c.name("name", d.Name, printable)
	c.reason(d.Reason, true)
	d.Decision.validate(c)
}

func (d *Checkpoint) validate(c *checker) {
	c.positive("sequence", d.Sequence)
	c.line("viewHash", d.ViewHash, 1, maxName)
	c.positive("treeSize", d.TreeSize)
	c.line("rootHash", d.RootHash, 1, maxName)
}

func (d *Decision) validate(c *checker) {
	if d == nil {
		return
	}
	c.positive("projector", d.Projector)
	c.safe("basis", d.Basis)
	c.list("cause", len(d.Cause))
	for i, n := range d.Cause {
		c.positive(index("cause", i), n)
	}
}

// Validate says what is wrong with a target's description; whether the kind and layout exist is for adapters to say.
func (t *Target) Validate() error {
	c := &checker{}
	t.validate(c)
	return c.err()
}

func (t *Target) validate(c *checker) {
	c.name("name", t.Name, groupAlso)
	c.line("kind", t.Kind, 1, maxName)
	c.line("layout", t.Layout, 0, maxName)
	c.line("namespace", t.Namespace, 0, maxText)
	c.line("object", t.Object, 0, maxText)
	c.line("path", t.Path, 0, maxText)
	c.components(t.Components)
	if t.Guarded && t.Observe {
		c.fail("guarded", "a target is either guarded or only observed, not both")
	}
}

func (c *checker) order(o Order) {
	c.line("actor", o.Actor, 1, maxName)
	c.reason(o.Reason, true)
}

func (c *checker) components(all []string) {
	c.list("components", len(all))
	for i, s := range all {
		c.name(index("components", i), s, componentAlso)
	}
}

func (c *checker) list(field string, n int) {
	if n > maxList {
		c.fail(field, fmt.Sprintf("has %d elements; at most %d are allowed", n, maxList))
	}
}

// decisionOf is what a record of the projector carries, nil where the event is not the projector's. It also says
// whether the kind is one that a projector decides.
func decisionOf(d Data) (decision *Decision, decides bool) {
	switch d := d.(type) {
	case *Grant:
		return d.Decision, true
	case *Revoke:
		return d.Decision, true
	case *Include:
		return d.Decision, true
	case *Resume:
		return d.Decision, true
	case *Policy:
		return d.Decision, true
	case *Push:
		return &d.Decision, true
	case *Yield:
		return &d.Decision, true
	case *Hold:
		return &d.Decision, true
	case *Stale:
		return &d.Decision, true
	case *Alert:
		return &d.Decision, true
	case *Clear:
		return &d.Decision, true
	}
	return nil, false
}
