package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

const (
	group        = "g"
	throttle     = 2 * time.Second
	writeTimeout = 10 * time.Second // of a write that hangs, for its caller
	patience     = 30 * time.Second // of real time, for a real backend
)

// world is everything outside of the projector's core: the clock, the log, the instances and the targets.
type world struct {
	ctx      context.Context
	scenario *Scenario
	now      time.Time
	log      []journal.Record
	ids      map[string]uint64 // of projectors' events: where the first one is
	out      io.Writer         // the journal goes there, or nil

	view     *view.View // the fold of the whole log
	shadow   *view.View // the same by way of snapshots
	verdicts []view.Result

	objects   map[string]*object
	instances []*instance
	answers   chan answer // of pushes under way
	started   int         // instances so far
	takeovers int

	alive    *alive
	sessions *sessions
	ended    string // component whose managed term a projector has just ended, and a grant must follow

	attempted int               // writes that reached a target, since the last expect
	events    []int             // indexes into log of the file's own events
	newest    int               // index into log of the newest one, redelivered ones too
	epochs    map[string]uint64 // highest seen, by component
	broken    []error           // invariants
	since     int               // index into log of what came after the last expect
}

// object is one target in the world.
type object struct {
	name         string
	spec         journal.Target
	backend      Object
	perComponent bool // each component has an object of its own
	deaf         bool
	held         bool
	fault        *fault // nil: writes land
	hanging      []*hanging
}

// fault is what becomes of writes: of so many to each object of a target, and it is over for all of them when one gets
// through.
type fault struct {
	word    string
	applied bool
	times   int
	failed  map[projector.Object]int
}

// hanging is a write that is held back.
type hanging struct {
	write func(context.Context) error
	done  chan error
	gone  bool // its caller does not wait any more
	doc   *projector.Document
}

// instance is one journald.
type instance struct {
	name    string
	core    *projector.Core
	read    int // records folded
	dead    bool
	armed   bool // freezes at its next write
	frozen  bool
	pushes  map[projector.Object]*push
	wake    time.Time
	targets map[string]projector.Target
	heard   map[string]uint64 // revisions of liveness keys, by candidate
}

// push is a push under way.
type push struct {
	instance *instance
	object   *object
	push     projector.Push
	cancel   context.CancelCauseFunc
	parked   chan struct{} // one token for each time it comes to rest at its gate
	thaw     chan struct{} // closed when its instance goes on
	expires  time.Time     // when its caller gives up, once it hangs
}

// answer is what came of a push.
type answer struct {
	push    *push
	receipt projector.Receipt
	err     error
}

func newWorld(ctx context.Context, s *Scenario, o Options) (*world, error) {
	w := &world{
		ctx: ctx, scenario: s, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ids: map[string]uint64{}, out: o.Journal,
		view: view.New(), shadow: view.New(), objects: map[string]*object{}, answers: make(chan answer), newest: -1, epochs: map[string]uint64{},
		alive: newAlive(), sessions: newSessions(),
	}
	for _, spec := range s.targets() {
		opened, err := o.Backend.Open(ctx, group, spec)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make the object of target %s: %w", spec.Name, err), w.close())
		}
		w.objects[spec.Name] = &object{name: spec.Name, spec: spec, backend: opened}
	}
	if err := w.start(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// start has another instance take over.
func (w *world) start() error {
	i := &instance{
		name: fmt.Sprintf("journald-%d", w.started), pushes: map[projector.Object]*push{},
		targets: map[string]projector.Target{}, heard: map[string]uint64{},
	}
	w.started++
	for name, o := range w.objects {
		target, err := o.backend.Target()
		if err != nil {
			return fmt.Errorf("open target %s: %w", name, err)
		}
		i.targets[name] = target
		o.perComponent = target.PerComponent()
	}
	i.core = projector.NewCore(projector.Options{
		Instance: i.name, Random: rand.New(rand.NewPCG(1, uint64(w.started))),
		Settings: projector.Settings{Defaults: w.scenario.policy, Groups: map[string]projector.Group{
			group: {Policy: w.scenario.policy, Targets: w.scenario.targets()},
		}},
		PerComponent: func(_ string, spec journal.Target) bool {
			o := w.objects[spec.Name]
			return o != nil && o.perComponent
		},
	})
	i.core.Listen()
	w.instances = append(w.instances, i)
	return w.takeOver(i)
}

// takeOver has an instance act.
func (w *world) takeOver(i *instance) error {
	w.takeovers++
	sequence, err := w.store(journal.Event{
		ID: fmt.Sprintf("takeover-%d", w.takeovers), Source: "projector/" + i.name, Group: "_", Time: w.now,
		Data: &journal.Takeover{Instance: i.name},
	})
	if err != nil {
		return err
	}
	i.core.Lead(sequence)
	return w.settle()
}

// active is the instance that acts, or would if it were not frozen.
func (w *world) active() *instance {
	for _, i := range slices.Backward(w.instances) {
		if !i.dead && i.core.Active() {
			return i
		}
	}
	return nil
}

// store appends an event to the log, unless a projector said the same within the de-duplication window.
func (w *world) store(e journal.Event) (uint64, error) {
	if err := e.Validate(); err != nil {
		return 0, fmt.Errorf("the %s is not a valid event: %w", e.Data.Kind(), err)
	}
	raw, err := e.Encode()
	if err != nil {
		return 0, err
	}
	if first, ok := w.ids[e.MessageID()]; ok {
		return first, nil
	}
	sequence := w.put(e.Subject(), raw)
	if strings.HasPrefix(e.Source, "projector/") {
		w.ids[e.MessageID()] = sequence
	}
	return sequence, nil
}

// put stores bytes, folds them, and checks what must hold for every record.
func (w *world) put(subject string, raw []byte) uint64 {
	r := journal.NewRecord(uint64(len(w.log))+1, w.now, subject, raw)
	w.log = append(w.log, r)
	result := w.view.Apply(&r)
	w.verdicts = append(w.verdicts, result)
	w.checkRecord(&r, result)
	w.checkElection(&r, result)
	if w.out != nil {
		fmt.Fprintf(w.out, "%s\n", line(&r, result))
	}
	return r.Sequence
}

// settle runs the world until nothing is left to do at this moment.
func (w *world) settle() error {
	for range 100_000 {
		busy, err := w.round()
		if err != nil || !busy {
			return err
		}
	}
	return errors.New("the world does not come to rest: something is decided or written without end")
}

func (w *world) round() (bool, error) {
	busy := false
	for _, i := range w.instances {
		if i.dead || i.frozen {
			continue
		}
		worked, err := w.step(i)
		if err != nil {
			return false, err
		}
		busy = busy || worked
	}
	return busy, nil
}

// step gives an instance what is new, and does its work.
func (w *world) step(i *instance) (bool, error) {
	busy := w.tell(i) || i.read < len(w.log)
	for ; i.read < len(w.log); i.read++ {
		i.core.Apply(&w.log[i.read])
	}
	work := i.core.Poll(w.now, w.own())
	i.wake = work.Wake
	for _, b := range work.Batches {
		var last uint64
		for _, e := range b.Events {
			sequence, err := w.store(e)
			if err != nil {
				return false, err
			}
			last = max(last, sequence)
		}
		i.core.Appended(b.ID, last)
	}
	for _, e := range work.Expiries {
		w.expire(i, e)
	}
	if work.Barrier {
		i.core.Last(uint64(len(w.log)))
	}
	for _, p := range work.Pushes {
		if err := w.begin(i, p); err != nil {
			return false, err
		}
	}
	return busy || len(work.Batches) > 0 || len(work.Pushes) > 0 || len(work.Expiries) > 0 || work.Barrier, nil
}

// begin starts a push and waits until it has ended or rests at its gate.
func (w *world) begin(i *instance, p projector.Push) error {
	run := &push{instance: i, object: w.objects[p.Object.Target], push: p, parked: make(chan struct{}, 1), thaw: make(chan struct{})}
	i.pushes[p.Object] = run
	ctx, cancel := context.WithCancelCause(w.ctx)
	run.cancel = cancel
	ctx = context.WithValue(ctx, gateKey{}, gate(func(ctx context.Context, write func(context.Context) error) error {
		return w.pass(ctx, run, write)
	}))
	go func() {
		receipt, err := i.targets[p.Object.Target].Push(ctx, p.Document)
		w.answers <- answer{run, receipt, err}
	}()
	return w.await(run)
}

// await waits until the push has ended or rests at its gate.
func (w *world) await(run *push) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case <-run.parked:
			return nil
		case a := <-w.answers:
			w.answered(a)
			if a.push == run {
				return nil
			}
		case <-limit.C:
			return fmt.Errorf("target %s has not answered for %s", run.object.name, patience)
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		}
	}
}

// answered tells the instance what came of its push.
func (w *world) answered(a answer) {
	i := a.push.instance
	if i.pushes[a.push.push.Object] == a.push {
		delete(i.pushes, a.push.push.Object)
	}
	a.push.cancel(nil)
	if !i.dead {
		i.core.Pushed(a.push.push, a.receipt, a.err, w.now)
	}
}

// pass is the gate: what becomes of a write.
func (w *world) pass(ctx context.Context, run *push, write func(context.Context) error) error {
	if run.instance.armed || run.instance.frozen {
		run.instance.armed, run.instance.frozen = false, true
		run.parked <- struct{}{}
		select {
		case <-run.thaw:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	w.attempted++
	o := run.object
	if o.held {
		return w.hang(ctx, run, write)
	}
	f := o.fault
	if f == nil || f.failed[run.push.Object] >= f.times {
		o.fault = nil
		return w.land(o, run.push.Document, write)
	}
	f.failed[run.push.Object]++
	if f.applied {
		if err := w.land(o, run.push.Document, write); err != nil {
			return err
		}
	}
	return &Injected{f.word}
}

// hang keeps a write back until the target lets go, or its caller gives up.
func (w *world) hang(ctx context.Context, run *push, write func(context.Context) error) error {
	h := &hanging{write: write, done: make(chan error, 1), doc: run.push.Document}
	run.object.hanging = append(run.object.hanging, h)
	run.expires = w.now.Add(writeTimeout)
	run.parked <- struct{}{}
	select {
	case err := <-h.done:
		return err
	case <-ctx.Done():
		h.gone = true
		return &Injected{"timeout"}
	}
}

// land makes a write, and checks what it did to the object.
func (w *world) land(o *object, doc *projector.Document, write func(context.Context) error) error {
	before, err := o.backend.Show(w.ctx, doc.Component)
	if err != nil {
		return err
	}
	err = write(context.WithoutCancel(w.ctx))
	after, showErr := o.backend.Show(w.ctx, doc.Component)
	if showErr != nil {
		return errors.Join(err, showErr)
	}
	w.checkWrite(o, doc, before, after)
	return err
}

// advance moves the clock; what waits for a moment happens at it.
func (w *world) advance(d time.Duration) error {
	end := w.now.Add(d)
	for {
		if err := w.settle(); err != nil {
			return err
		}
		at, run := w.next()
		w.checkLeases()
		if at.IsZero() || at.After(end) {
			break
		}
		w.now = maxTime(w.now, at)
		w.beats()
		if run != nil {
			run.expires = time.Time{}
			run.cancel(errors.New("no answer within 10s"))
			if err := w.await(run); err != nil {
				return err
			}
		}
	}
	w.now = end
	return w.settle()
}

// next is the earliest moment at which something happens, and the push whose caller gives up then, if it is that.
func (w *world) next() (at time.Time, run *push) {
	at = w.nextBeat()
	for _, i := range w.instances {
		if i.dead || i.frozen {
			continue
		}
		if !i.wake.IsZero() && (at.IsZero() || i.wake.Before(at)) {
			at, run = maxTime(i.wake, w.now.Add(1)), nil
		}
		for _, key := range slices.SortedFunc(maps.Keys(i.pushes), compareObjects) {
			if p := i.pushes[key]; !p.expires.IsZero() && (at.IsZero() || p.expires.Before(at)) {
				at, run = p.expires, p
			}
		}
	}
	return at, run
}

func compareObjects(a, b projector.Object) int {
	return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Component, b.Component))
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// close ends whatever is still under way, and removes the objects.
func (w *world) close() error {
	for _, i := range w.instances {
		w.kill(i)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), patience)
	defer cancel()
	var errs []error
	for _, o := range w.objects {
		errs = append(errs, o.backend.Close(ctx))
	}
	return errors.Join(errs...)
}

// kill ends an instance. Its writes that hang at a target may still land.
func (w *world) kill(i *instance) {
	if i.dead {
		return
	}
	i.dead = true
	for _, run := range i.pushes {
		run.cancel(errors.New("the instance is dead"))
		for a := range w.answers {
			w.answered(a)
			if a.push == run {
				break
			}
		}
	}
}
