package view_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// generator makes journals at random: every kind of event, of few names, so that they meet; what a projector decides,
// rightly and wrongly; and records that come twice. It folds what it makes, to know what would be right.
type generator struct {
	t       *rapid.T
	random  *rand.Rand // evenly, or nil: as rapid likes it, which can make a failing case small, and favours extremes
	v       *view.View
	now     time.Time
	records []journal.Record

	epochs      []uint64 // of takeovers
	runs        uint64   // of checks
	revisions   uint64   // of targets
	live        view.Liveness
	fixed       bool // the policy and targets stay, and nobody misses observations
	redelivered bool // some records come twice
}

func newGenerator(t *rapid.T) *generator {
	g := &generator{t: t, v: view.New(), now: epoch, redelivered: true, live: emptyLiveness()}
	if rapid.SampledFrom([]bool{true, true, false}).Draw(t, "evenly") {
		g.random = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	}
	g.takeover()
	g.add(g.policy("plain"))
	g.add(g.policy("guarded"))
	return g
}

// journal is a whole one.
func (g *generator) journal() []journal.Record {
	for range g.length(150) {
		g.step()
	}
	return g.records
}

func (g *generator) length(most int) int { return 1 + g.below("length", most) }

// below is a number from 0 that is below n.
func (g *generator) below(label string, n int) int {
	if g.random != nil {
		return g.random.IntN(n)
	}
	return rapid.IntRange(0, n-1).Draw(g.t, label)
}

func (g *generator) pick(label string, from ...string) string { return from[g.below(label, len(from))] }

func (g *generator) number(label string, most int) uint64 { return uint64(1 + g.below(label, most)) }

func (g *generator) chance(label string, percent int) bool { return g.below(label, 100) < percent }

// step adds a record, and says what it was and what it did.
func (g *generator) step() (*journal.Record, view.Result) {
	if g.chance("time passes", 30) {
		g.now = g.now.Add([]time.Duration{time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 10 * time.Minute}[g.below("time", 5)])
	}
	if g.chance("a sign of life, or none", 10) {
		g.stir()
	}
	if g.redelivered && g.chance("again", 10) {
		return g.again(g.below("which", len(g.records)))
	}
	if p := g.proposals(); len(p) > 0 && g.chance("the projector acts", 60) {
		return g.add(p[0])
	}
	return g.add(g.event())
}

// proposals are the events of what is to be decided at this moment, as a projector would append them.
func (g *generator) proposals() []journal.Event {
	var all []journal.Event
	for _, p := range g.v.Decide(g.now, g.live, never) {
		current, _ := g.v.Projector()
		all = append(all, p.Events("projector/p", current, g.now)...)
	}
	return all
}

func (g *generator) add(e journal.Event) (*journal.Record, view.Result) {
	if e.ID == "" {
		e.ID = fmt.Sprintf("id-%d", len(g.records)+1)
	}
	e.Time = g.now
	r := stored(g.t, uint64(len(g.records))+1, g.now, e)
	return g.apply(r)
}

// again delivers a record of old as a new one.
func (g *generator) again(i int) (*journal.Record, view.Result) {
	r := g.records[i]
	r.Sequence, r.Time = uint64(len(g.records))+1, g.now
	return g.apply(r)
}

func (g *generator) apply(r journal.Record) (*journal.Record, view.Result) {
	if _, ok := r.Event.Data.(*journal.Takeover); ok {
		g.epochs = append(g.epochs, r.Sequence)
	}
	g.records = append(g.records, r)
	switch d := r.Event.Data.(type) { // whoever speaks is not silent
	case *journal.Join:
		delete(g.live.Stale, view.Holder{Group: r.Event.Group, Candidate: d.Candidate, Incarnation: d.Incarnation})
	case *journal.Health:
		delete(g.live.Stale, view.Holder{Group: r.Event.Group, Candidate: d.Candidate, Incarnation: d.Incarnation})
	}
	return &r, g.v.Apply(&r)
}

// stir changes what the projector has seen of a candidate's liveness.
func (g *generator) stir() {
	h := view.Holder{Group: "plain", Candidate: g.candidate(), Incarnation: g.incarnation()}
	switch g.pick("liveness", "quiet", "lapsed", "ended", "heard", "heard") {
	case "quiet":
		g.live.Stale[h] = g.now
	case "lapsed":
		g.live.Lapsed[h] = g.now
	case "ended":
		g.live.Lapsed[h] = g.now
		g.live.Ended[h] = view.Ending{Since: g.now, Sequence: g.v.Sequence()}
	case "heard":
		delete(g.live.Stale, h)
		delete(g.live.Lapsed, h)
	}
	g.v.Attend(h.Group, h.Candidate)
}

func (g *generator) takeover() {
	g.add(journal.Event{Source: "projector/p", Group: "_", Data: &journal.Takeover{Instance: "p"}})
}

func (g *generator) group() string {
	return g.pick("group", "plain", "plain", "plain", "plain", "guarded", "guarded", "unnamed")
}

func (g *generator) component() string { return g.pick("component", "a", "a", "a", "b") }

func (g *generator) candidate() string { return g.pick("candidate", "k1", "k2", "k3") }

func (g *generator) session() string { return g.pick("session", "S1", "S2", "S3", "S4", "S5", "S6") }

func (g *generator) address() string { return g.pick("address", "http://one", "http://two") }

func (g *generator) incarnation() string {
	return g.pick("incarnation", "1", "1", "1", "1", "1", "2", "3")
}

func (g *generator) target() string { return g.pick("target", "cm", "cm", "zk", "mirror", "nowhere") }

// revision mostly rises.
func (g *generator) revision() uint64 {
	if g.chance("an old revision", 20) {
		return g.number("revision", 40)
	}
	g.revisions++
	return g.revisions
}

// event is one of any kind. Sessions are often the open one's, pushes often the newest intent's: what never fits says
// little.
func (g *generator) event() journal.Event {
	e := journal.Event{Source: "candidate/k", Group: g.group()}
	kind := g.pick("kind",
		"grant", "grant", "grant", "confirm", "confirm", "confirm", "revoke", "release", "ready", "retry", "withdraw", "join", "join", "leave",
		"health", "health", "health", "health", "health", "watch", "watch", "watch", "push", "push", "push", "transfer", "exclude",
		"include", "pause", "resume", "policy", "takeover", "yield", "hold", "stale", "alert", "clear", "checkpoint", "garbage",
	)
	switch kind {
	case "grant", "confirm", "revoke", "release", "ready", "retry", "withdraw":
		e.Component = g.component()
		g.ofSession(g.sensible(kind, &e), &e)
	case "join", "leave", "health":
		e.Data = g.ofCandidate(kind, e.Group)
	case "watch":
		e.Source = "observer/o"
		e.Data = g.watch(&e)
	case "transfer", "exclude", "include", "pause", "resume":
		e.Source = "operator/alice"
		e.Data = g.order(kind, &e)
	case "policy":
		if !g.fixed {
			return g.policy(e.Group)
		}
		e.Data = &journal.Leave{Candidate: "stranger", Incarnation: "1"}
	case "takeover", "checkpoint":
		e.Source, e.Group = "projector/p", "_"
		e.Data = &journal.Takeover{Instance: "p"}
		if kind == "checkpoint" {
			e.Data = &journal.Checkpoint{Sequence: 1, ViewHash: "h", TreeSize: 1, RootHash: "r"}
		}
	case "garbage": // of a component that nobody ever heard of
		e.Component, e.Data = "stranger", &journal.Release{Session: "S9", Reason: "test"}
	default:
		e.Component = g.component()
		if better := g.sensible(kind, &e); better != kind {
			g.ofSession(better, &e)
			break
		}
		e.Source = "projector/p"
		g.decision(kind, &e)
	}
	return e
}

// sensible is mostly a grant where an event of this kind would have no term to speak of, and a confirmation where it
// would have no intent.
func (g *generator) sensible(kind string, e *journal.Event) string {
	c := g.current(e)
	switch {
	case g.chance("senseless", 20):
	case c.Term == nil && kind != "push":
		return "grant"
	case c.Intent == nil && c.Term != nil && (kind == "push" || kind == "revoke"):
		return "confirm"
	}
	return kind
}

// current is the state of the component that an event is about, or an empty one.
func (g *generator) current(e *journal.Event) *view.Component {
	if group := g.v.Group(e.Group); group != nil && group.Components[e.Component] != nil {
		return group.Components[e.Component]
	}
	return &view.Component{}
}

func (g *generator) ofSession(kind string, e *journal.Event) {
	session, candidate := g.session(), g.candidate()
	if t := g.current(e).Term; t != nil && kind != "grant" && g.chance("the open one", 60) {
		session, candidate = t.Session, t.Candidate
	}
	switch kind {
	case "grant":
		d := &journal.Grant{Candidate: candidate, Session: session}
		if g.chance("lock", 20) {
			d.Lock = &journal.Lock{Kind: "lease", Revision: g.number("lock revision", 4)}
		}
		if g.chance("the projector elects", 10) {
			e.Source, d.Decision = "projector/p", g.basis(e.Group)
		}
		e.Data = d
	case "confirm":
		d := &journal.Confirm{Session: session, Candidate: candidate, Address: g.address(), Attempt: g.number("attempt", 5)}
		if g.chance("properties", 20) {
			d.Properties = map[string]string{"zone": g.pick("zone", "x", "y")}
		}
		e.Data = d
	case "revoke":
		d := &journal.Revoke{Session: session, Reason: "lost"}
		if g.chance("the projector revokes", 10) {
			e.Source, d.Decision = "projector/p", g.basis(e.Group)
		}
		e.Data = d
	case "release":
		e.Data = &journal.Release{Session: session, Reason: "stopped"}
	case "ready":
		e.Data = &journal.Ready{Session: session, Ready: g.chance("ready", 50)}
	case "retry":
		e.Data = &journal.Retry{Session: session, Attempt: 1, Error: "503"}
	case "withdraw":
		d := &journal.Withdraw{Session: session, Reason: "test"}
		if g.chance("an operator withdraws", 30) {
			e.Source, d.Session = "operator/alice", ""
		}
		e.Data = d
	}
}

func (g *generator) ofCandidate(kind, group string) journal.Data {
	name, incarnation := g.candidate(), g.incarnation()
	if state := g.v.Group(group); state != nil && state.Candidates[name] != nil && g.chance("the present incarnation", 80) {
		incarnation = max(state.Candidates[name].Incarnation, "1")
	}
	switch kind {
	case "join":
		components := []string{"a", "b"}[:g.number("components", 2)]
		if g.chance("named twice", 10) {
			components = append(components, "a")
		}
		return &journal.Join{Candidate: name, Incarnation: incarnation, Components: components, Priority: int(g.number("priority", 2))}
	case "leave":
		return &journal.Leave{Candidate: name, Incarnation: incarnation}
	}
	d := &journal.Health{
		Candidate: name, Incarnation: incarnation, Check: g.pick("check", "disk", "disk", "disk", "http"),
		Status: g.pick("status", "pass", "fail"), Run: g.number("run", 12),
	}
	if g.chance("the next run", 80) {
		g.runs++
		d.Run = 12 + g.runs
	}
	return d
}

func (g *generator) watch(e *journal.Event) journal.Data {
	d := &journal.Watch{Target: g.target(), Gap: !g.fixed && g.chance("gap", 10)}
	if d.Gap && g.chance("bare gap", 50) {
		return d
	}
	e.Component = g.component()
	d.Revision = g.revision()
	if g.chance("fence", 60) {
		d.Sequence = g.number("sequence", len(g.records))
	}
	if i := g.current(e).Intent; i != nil && g.chance("the intent's fence", 50) {
		d.Sequence = i.Sequence
	}
	if g.chance("holder", 70) {
		d.Holder = g.candidate()
	}
	if g.chance("entry", 60) {
		d.Entry = &journal.LeaderInfo{Session: g.session(), Address: g.address()}
		if l := g.current(e).Leader(); l != nil && g.chance("the intent", 40) {
			d.Entry = &journal.LeaderInfo{Session: l.Session, Address: l.Address, Candidate: l.Candidate}
		}
		if g.chance("what no confirmation could say", 5) {
			d.Entry.Session = "not\nprintable"
		}
	}
	return d
}

func (g *generator) order(kind string, e *journal.Event) journal.Data {
	until := time.Time{}
	if g.chance("until", 50) {
		until = g.now.Add(time.Duration(g.number("minutes", 20)) * time.Minute)
	}
	switch kind {
	case "transfer":
		e.Component = g.component()
		return &journal.Transfer{To: g.pick("to", "", "k1", "k2", "k3"), Force: g.chance("force", 30), Order: order()}
	case "exclude":
		return &journal.Exclude{Candidate: g.candidate(), Until: until, Order: order()}
	case "include":
		return &journal.Include{Candidate: g.candidate(), Order: order()}
	case "pause":
		return &journal.Pause{Until: until, Order: order()}
	}
	return &journal.Resume{Order: order()}
}

func (g *generator) policy(group string) journal.Event {
	e := journal.Event{Source: "operator/alice", Group: group}
	d := &journal.Policy{Policy: rules(), Order: order()}
	d.Policy.OnRevoke = g.pick("onRevoke", policy.Retain, policy.Clear)
	d.Policy.OnErase.Default = g.pick("onErase", policy.Restore, policy.Alert)
	d.Policy.Flapping = int(g.number("flapping", 4))
	d.Policy.Health.MaxYields = int(g.number("maxYields", 2))
	d.Policy.Health.FailureThreshold = int(g.number("failureThreshold", 2))
	d.Policy.Health.SilentLeader = g.pick("silentLeader", policy.Hold, policy.Yield)
	if group == "guarded" {
		d.Policy.Authority = policy.Backend
	} else if g.chance("managed", 40) {
		d.Policy.Election = policy.Managed
	}
	if g.fixed || len(g.records) < 3 || g.chance("targets", 70) {
		d.Targets = g.targets(group == "guarded")
	}
	if len(g.records) > 3 && g.chance("the configuration", 30) {
		e.Source, d.Decision = "projector/p", g.basis(group)
	}
	e.Data = d
	return e
}

func (g *generator) targets(guarded bool) *[]journal.Target {
	all := []journal.Target{
		{Name: "cm", Kind: "k8s/configmap", Guarded: guarded},
		{Name: "zk", Kind: "zk", Components: [][]string{nil, {}, {"a"}}[g.number("zk shows", 3)-1]},
		{Name: "mirror", Kind: "zk", Observe: true},
	}
	all = all[:g.number("targets", 3)]
	return &all
}

// basis is mostly right.
func (g *generator) basis(group string) *journal.Decision {
	d := &journal.Decision{Projector: g.epochs[len(g.epochs)-1]}
	if state := g.v.Group(group); state != nil {
		d.Basis = state.Version
	}
	if g.chance("wrong basis", 20) {
		d.Basis += g.number("off by", 3) - 2
		d.Basis = min(d.Basis, 1000) // below none there is nothing
	}
	if g.chance("wrong projector", 15) {
		d.Projector = append([]uint64{99}, g.epochs...)[g.below("epoch", len(g.epochs)+1)]
	}
	return d
}

func (g *generator) decision(kind string, e *journal.Event) {
	d, c := *g.basis(e.Group), g.current(e)
	session := g.session()
	if c.Term != nil && g.chance("the open one", 70) {
		session = c.Term.Session
	}
	switch kind {
	case "push":
		e.Data = g.push(d, c)
	case "yield":
		e.Data = &journal.Yield{Session: session, To: g.pick("to", "", "k1", "k2"), Reason: "test", Decision: d}
	case "hold":
		e.Data = &journal.Hold{Session: session, Reason: "test", Decision: d}
	case "stale":
		e.Component = ""
		e.Data = &journal.Stale{Candidate: g.candidate(), Incarnation: g.incarnation(), Since: g.now, Decision: d}
	case "alert":
		e.Data = &journal.Alert{Name: g.alert(), Reason: "test", Decision: d}
	case "clear":
		e.Data = &journal.Clear{Name: g.alert(), Reason: "test", Decision: d}
	}
}

func (g *generator) alert() string {
	return g.pick("alert", "NoLeader", "YieldBlocked", "PublishedDrift", "TargetFailing", "Custom")
}

func (g *generator) push(d journal.Decision, c *view.Component) journal.Data {
	p := &journal.Push{
		Target: g.target(), Intent: g.number("intent", len(g.records)), Attempt: int(g.number("attempt", 4)), Decision: d,
		Outcome:  g.pick("outcome", journal.OK, journal.OK, journal.Superseded, journal.Failed, journal.Unknown),
		Revision: g.revision(),
	}
	if i := c.Intent; i != nil && g.chance("the newest intent", 80) {
		p.Intent = i.Sequence
		if i.Replaced != 0 && g.chance("the one before", 20) {
			p.Intent = i.Replaced
		}
	}
	if p.Outcome != journal.OK {
		p.Error, p.Permanent = "test", g.chance("permanent", 30)
	}
	return p
}
