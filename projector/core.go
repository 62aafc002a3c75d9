package projector

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// Settings is what the configuration says about groups.
type Settings struct {
	Defaults policy.Policy    // of groups that only appear in events
	Groups   map[string]Group // by name
}

// Group is what the configuration says about one group.
type Group struct {
	Policy  policy.Policy
	Targets []journal.Target
}

// Options are what a [Core] is made of.
type Options struct {
	Instance string // name of this instance
	Settings Settings
	Random   *rand.Rand // jitter

	// PerComponent says whether a target is one object for each component, false where the target is not known.
	PerComponent func(group string, spec journal.Target) bool

	// Leaders has every component shown in the built-in key-value bucket too, without a trace in the journal.
	Leaders bool
}

// Object names one object of a backend: what has one writer and one fence.
type Object struct {
	Group     string
	Target    string // empty for the built-in key-value entry
	Component string // empty where one object shows several components
}

// Work is what the caller of a [Core] has to do next.
type Work struct {
	// Batches are to be appended, each in one batch of its own, and answered by Appended. The order among them is of
	// no importance.
	Batches []Batch

	// Pushes are to be started, each answered by Pushed. There is never more than one under way for an object.
	Pushes []Push

	// Expiries are tombstones to be written into liveness keys, each answered by Expired.
	Expiries []Expiry

	// Barrier asks for the newest sequence of the log, as its leader knows it, to be answered by Last.
	Barrier bool

	// Wake is when to poll again if nothing happens before; zero: never.
	Wake time.Time
}

// Batch is a set of events that are stored together or not at all.
type Batch struct {
	ID     uint64
	Events []journal.Event
}

// Push is one write to start.
type Push struct {
	ID       uint64
	Object   Object
	Spec     journal.Target
	Document *Document
}

// Core is a projector without a clock, goroutines or I/O: records, answers and the time go in, work comes out. It is
// not safe for concurrent use.
type Core struct {
	opts   Options
	source string
	view   *view.View

	leading uint64 // sequence of our own takeover that is to be waited for, or that we act under
	active  bool

	live    *liveness
	batches map[uint64]batch     // on their way to the journal
	nextID  uint64               //
	stored  map[uint64]uint64    // batches that are stored, by the sequence at which they are folded
	busy    map[string]bool      // groups with a decision on its way
	fresh   map[string]bool      // groups whose configuration has to be compared
	futile  map[string]time.Time // groups whose last decision changed nothing, with until when they rest

	pending []Batch // to be handed out by the next Poll

	writers  map[Object]*writer
	running  map[string]int // writes under way, by target
	queue    []*writer      // to be stepped
	sleepers []*writer
	asked    []*writer // want the end of the log
	answered []*writer // wait for the answer that was asked for
}

// batch is what is to be done when a batch is folded.
type batch struct {
	group   string  // whose decision it is, or empty
	version uint64  // at which the group was decided on
	writer  *writer // whose push it records, or nil
}

// NewCore is a core at the beginning of the journal. It acts after Lead only.
func NewCore(opts Options) *Core {
	c := &Core{opts: opts, source: "projector/" + opts.Instance, view: view.New()}
	c.live = newLiveness(c.view)
	c.rest()
	return c
}

// rest forgets everything that is only of interest while the core acts.
func (c *Core) rest() {
	c.leading, c.active, c.pending = 0, false, nil
	c.batches, c.stored = map[uint64]batch{}, map[uint64]uint64{}
	c.busy, c.fresh, c.futile = map[string]bool{}, map[string]bool{}, map[string]time.Time{}
	c.writers, c.running = map[Object]*writer{}, map[string]int{}
	c.queue, c.sleepers, c.asked, c.answered = nil, nil, nil, nil
	c.live.forget()
}

// View is what is folded so far.
func (c *Core) View() *view.View { return c.view }

// Active says whether the core acts.
func (c *Core) Active() bool { return c.active }

// Lead says that this core's takeover record is stored at this sequence: it acts from there on, until it folds a newer
// one.
func (c *Core) Lead(sequence uint64) {
	c.rest()
	c.leading = sequence
	c.activate()
}

// Resign has the core act no more.
func (c *Core) Resign() { c.rest() }

// Configure has the groups live by other settings from here on.
func (c *Core) Configure(s Settings) {
	c.opts.Settings = s
	if c.active {
		c.compareAll()
	}
}

// Apply folds the next record.
func (c *Core) Apply(r *journal.Record) view.Result {
	result := c.view.Apply(r)
	if _, ok := r.Event.Data.(*journal.Takeover); ok && r.Err == nil {
		c.tookOver(r.Sequence)
		return result
	}
	if _, ok := r.Event.Data.(*journal.Policy); ok && result.Verdict == view.Applied {
		c.live.rule(result.Group)
	}
	if id, ok := c.stored[r.Sequence]; ok {
		delete(c.stored, r.Sequence)
		c.folded(id)
	}
	if c.active && result.Group != nil {
		c.react(r, result)
	}
	return result
}

// tookOver begins or ends our time.
func (c *Core) tookOver(sequence uint64) {
	if c.leading == 0 {
		return
	}
	if sequence > c.leading {
		c.rest()
		return
	}
	c.activate()
}

func (c *Core) activate() {
	if epoch, _ := c.view.Projector(); epoch > c.leading {
		c.rest()
		return
	}
	if c.active || c.view.Sequence() < c.leading {
		return
	}
	c.active = true
	c.compareAll()
	for name, g := range c.view.Groups() {
		c.view.Reconsider(name)
		c.verify(g)
	}
	c.live.begin()
}

// compareAll has the settings of every group compared with what the journal says.
func (c *Core) compareAll() {
	for name := range c.opts.Settings.Groups {
		c.fresh[name] = true
	}
	for name := range c.view.Groups() {
		c.fresh[name] = true
	}
}

// verify has every object of a group read and, where it differs, written.
func (c *Core) verify(g *view.Group) {
	for i := range g.Targets {
		c.verifyTarget(g, &g.Targets[i])
	}
	if c.opts.Leaders {
		for name := range g.Components {
			c.want(Object{Group: g.Name, Component: name}).verify = true
		}
	}
}

func (c *Core) verifyTarget(g *view.Group, spec *journal.Target) {
	if spec.Observe {
		return
	}
	for name, component := range g.Components {
		if component.Intent != nil && spec.Shows(name) {
			w := c.want(c.object(g, spec, name))
			w.verify, w.reread = true, true
		}
	}
}

func (c *Core) object(g *view.Group, spec *journal.Target, component string) Object {
	o := Object{Group: g.Name, Target: spec.Name}
	if c.opts.PerComponent(g.Name, *spec) {
		o.Component = component
	}
	return o
}

// react has written what a record made due.
func (c *Core) react(r *journal.Record, result view.Result) {
	g := result.Group
	if g.Configured == 0 {
		c.fresh[g.Name] = true
	}
	if _, ok := r.Event.Data.(*journal.Policy); ok && result.Verdict == view.Applied {
		c.verify(g)
		c.live.react(r, result)
		return
	}
	if d, ok := r.Event.Data.(*journal.Watch); ok && d.Gap && result.Verdict == view.Applied {
		c.returned(g, d.Target, r.Event.Component)
	}
	c.live.react(r, result)
	if result.Component != nil {
		c.reactTo(g, result.Component, r.Sequence)
	}
}

// returned has writes tried soon that failed while a target was away: its observer has just reached it again. They are
// spread over a second, so that what waited together does not come back together.
func (c *Core) returned(g *view.Group, target, component string) {
	spec := g.TargetSpec(target)
	if spec == nil {
		return
	}
	names := []string{component}
	if component == "" {
		names = slices.Sorted(maps.Keys(g.Components))
	}
	for _, name := range names {
		if w := c.writers[c.object(g, spec, name)]; w != nil && w.failures > 0 && !w.patient {
			w.hurry(c.view.Time().Add(time.Duration(c.opts.Random.Int64N(int64(spread)))))
		}
	}
}

func (c *Core) reactTo(g *view.Group, component *view.Component, sequence uint64) {
	if c.opts.Leaders && component.Shown == sequence {
		c.want(Object{Group: g.Name, Component: component.Name})
	}
	for i := range g.Targets {
		if t := component.Targets[g.Targets[i].Name]; t != nil && t.Due {
			c.want(c.object(g, &g.Targets[i], component.Name))
		}
	}
}

// Listen says that the liveness keys are watched from here on, and that Heard will tell what each shows, beginning with
// what it shows now: at the start, after every reconnect, and when the bucket may have been lost. Whatever was known of
// them is forgotten, and everybody has its whole time again. Until it is called nobody falls silent, and no lease lapses.
func (c *Core) Listen() {
	c.live.listen()
	if c.active {
		c.live.begin()
	}
}

// Deaf says that the keys are not watched any more, until Listen. As long nobody falls silent, no lease lapses, and no
// tombstone is asked for; what was found to be over stays so.
func (c *Core) Deaf() { c.live.deaf() }

// Restless says whether something was heard that a Poll may draw conclusions from. Renewals of those who live are not.
func (c *Core) Restless() bool { return c.active && len(c.live.next) > 0 }

// Heard says what a liveness key was seen to show; at is the instance's own clock, which nothing can set. A revision
// that is not above the newest one heard is passed over.
func (c *Core) Heard(b Beat, at time.Duration) { c.live.heard(b, at) }

// Expired answers an Expiry: whether the tombstone stands in the key. False says that the key has another revision by
// now. An answer that is lost is to be asked for again, and a key that shows this very tombstone has been written.
func (c *Core) Expired(e Expiry, written bool, at time.Duration) { c.live.answered(e, written, at) }

// Poll says what is to be done at now, the log's clock. at is the instance's own, since any moment of its choice: leases
// run by it, since the log's clock jumps where a stream gets another leader.
func (c *Core) Poll(now time.Time, at time.Duration) Work {
	var work Work
	if !c.active {
		return work
	}
	c.rested(now, &work)
	c.configure(now)
	if next := c.live.look(now, at); next != never {
		work.wake(now.Add(next - at))
	}
	for _, p := range c.view.Decide(now, c.live.seen, c.occupied) {
		c.busy[p.Group] = true
		c.append(batch{group: p.Group, version: p.Basis}, p.Events(c.source, c.leading, now))
	}
	if at, ok := c.view.Wake(); ok {
		work.wake(at)
	}
	c.stepAll(now, &work)
	work.Batches, c.pending = c.pending, nil
	work.Expiries, c.live.expiries = c.live.expiries, nil
	return work
}

// occupied says whether a group has to wait: for a decision on its way, for its own policy, or after one in vain.
func (c *Core) occupied(group string) bool {
	_, futile := c.futile[group]
	return futile || c.busy[group] || c.fresh[group]
}

// rested has groups rest for a second whose last decision changed nothing, and lets those go on that have.
func (c *Core) rested(now time.Time, work *Work) {
	for group, until := range c.futile {
		switch {
		case until.IsZero():
			c.futile[group] = now.Add(time.Second)
			work.wake(now.Add(time.Second))
		case until.After(now):
			work.wake(until)
		default:
			delete(c.futile, group)
		}
	}
}

// configure appends the policy of every group whose settings differ from what a projector wrote last. What an operator
// ordered since stands.
func (c *Core) configure(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.fresh)) {
		if c.busy[name] {
			continue
		}
		delete(c.fresh, name)
		want, named := c.opts.Settings.Groups[name]
		if !named {
			want.Policy = c.opts.Settings.Defaults
		}
		targets := append([]journal.Target{}, want.Targets...)
		data := &journal.Policy{
			Policy: want.Policy, Targets: &targets, Decision: &journal.Decision{},
			Order: journal.Order{Actor: "journald", Reason: "the configuration of " + c.opts.Instance},
		}
		var basis uint64
		if g := c.view.Group(name); g != nil {
			if !named && g.Configured != 0 && g.FromFile == nil {
				continue // an operator was first, and the file says nothing about this group
			}
			if g.FromFile.Says(data) {
				continue
			}
			basis = g.Version
		}
		p := view.Proposal{Group: name, Basis: basis, Data: []journal.Data{data}}
		c.busy[name] = true
		c.append(batch{group: name, version: basis}, p.Events(c.source, c.leading, now))
	}
}

func (c *Core) append(b batch, events []journal.Event) {
	c.nextID++
	c.batches[c.nextID] = b
	c.pending = append(c.pending, Batch{ID: c.nextID, Events: events})
}

// Appended says that a batch is stored, its last event at this sequence.
func (c *Core) Appended(id, sequence uint64) {
	if _, ok := c.batches[id]; !ok {
		return // from before we were replaced
	}
	if sequence <= c.view.Sequence() {
		c.folded(id)
		return
	}
	c.stored[sequence] = id
}

// folded goes on with what waited for a batch.
func (c *Core) folded(id uint64) {
	b := c.batches[id]
	delete(c.batches, id)
	if b.group != "" {
		delete(c.busy, b.group)
		if g := c.view.Group(b.group); g == nil || g.Version == b.version {
			c.futile[b.group] = time.Time{} // it came to nothing, as if its id had been somebody else's: do not spin
		}
	}
	if b.writer != nil {
		c.recorded(b.writer)
	}
}

func (w *Work) wake(at time.Time) {
	if w.Wake.IsZero() || at.Before(w.Wake) {
		w.Wake = at
	}
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Component, b.Component))
}

// String is for logs.
func (o Object) String() string { return fmt.Sprintf("%s/%s/%s", o.Group, o.Target, o.Component) }
