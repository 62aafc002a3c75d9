package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// Lease settles who tries to be the projector. It is a help against two instances taking over from each other without
// end; nothing that is shown or decided depends on it.
type Lease interface {
	// Acquire waits until this instance holds the lease. held ends when it does not hold it any more.
	Acquire(ctx context.Context) (held context.Context, err error)

	// Release lets another instance follow at once.
	Release(ctx context.Context) error
}

// Meter is told what happens, for metrics. Its methods are called in the projector's loop: they must not block, and
// not call the projector.
type Meter interface {
	Applied(r *journal.Record, result view.Result)
	Pushed(o Object, err error, receipt Receipt, took time.Duration)
}

// Config is what a [Projector] is made of.
type Config struct {
	Instance string // name of this instance, unique among those on one log
	Log      journal.Log
	Lease    Lease
	Connect  Connect // makes the targets that groups describe
	Leaders  Leaders // the built-in key-value bucket; nil: none
	Alive    Alive   // the candidates' liveness keys; nil: nobody is known to fall silent, and no lease ends
	Settings Settings
	Meter    Meter // nil: none
	Logger   *slog.Logger
	Seed     uint64 // of the jitter
}

func (c *Config) validate() error {
	switch {
	case c.Instance == "":
		return errors.New("projector: an instance needs a name")
	case c.Log == nil, c.Lease == nil, c.Connect == nil, c.Logger == nil:
		return errors.New("projector: a log, a lease, a connector and a logger are needed")
	}
	return nil
}

// Status says where a projector stands.
type Status struct {
	Instance string
	Active   bool
	Epoch    uint64    // of the active projector, whoever it is
	Applied  uint64    // newest sequence folded
	CaughtUp bool      // it has folded all that was stored when it began
	Ticked   time.Time // when the loop last came round
}

// Projector is the loop around a [Core]: it follows the log, and acts while it holds the lease and its takeover is the
// newest. What is folded can be read at any time, acting or not.
type Projector struct {
	cfg        Config
	targets    *targets
	complaints *complaints
	sightings  *sightings

	mu       sync.RWMutex // guards core for readers; the loop alone changes it
	core     *Core
	status   Status
	verdicts verdicts
	taps     []func(*journal.Record, view.Result)
	changed  chan struct{} // closed and replaced after every batch of records
	start    uint64        // newest sequence when Run began

	began    time.Time // when New was called, from which on our own clock runs
	received time.Time // when the newest record was, by the monotonic clock
	retarget bool      // a group's targets may have changed since they were last looked at
	settings chan Settings
	inbox    chan func() // what goroutines have to say, run by the loop
	sounds   chan sound  // what is heard of the liveness keys
	hearing  hearing     // of the loop
	tasks    sync.WaitGroup
}

// New checks the configuration; Run does the work.
func New(cfg Config) (*Projector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := &Projector{
		cfg: cfg, changed: make(chan struct{}), settings: make(chan Settings), inbox: make(chan func(), 256), sounds: make(chan sound),
		began: time.Now(),
	}
	p.targets = newTargets(cfg.Connect)
	p.complaints, p.sightings = newComplaints(cfg.Logger), newSightings(cfg.Logger)
	p.status.Instance = cfg.Instance
	p.core = NewCore(Options{
		Instance: cfg.Instance, Settings: cfg.Settings, Leaders: cfg.Leaders != nil,
		Random: rand.New(rand.NewPCG(cfg.Seed, 0)), PerComponent: p.targets.perComponent,
	})
	return p, nil
}

// Read hands out the view as it stands, to be read within the call only.
func (p *Projector) Read(read func(*view.View)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	read(p.core.View())
}

// Status says where the projector stands.
func (p *Projector) Status() Status {
	p.mu.RLock()
	defer p.mu.RUnlock()
	s := p.status
	s.Active = p.core.Active()
	s.Applied = p.core.View().Sequence()
	s.Epoch, _ = p.core.View().Projector()
	s.CaughtUp = !s.Ticked.IsZero() && s.Applied >= p.start
	return s
}

// Tap has f told every record that is folded from here on, and what that did, before anybody can read it. It is called
// in the loop, with the view locked: it must not block, nor call the projector. It is told until Run ends.
func (p *Projector) Tap(f func(*journal.Record, view.Result)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taps = append(p.taps, f)
}

// Changed is closed when more records have been folded.
func (p *Projector) Changed() <-chan struct{} {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.changed
}

// Wait returns when the record of a sequence has been folded.
func (p *Projector) Wait(ctx context.Context, sequence uint64) error {
	for {
		changed := p.Changed()
		if p.Status().Applied >= sequence {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for record %d to be folded: %w", sequence, context.Cause(ctx))
		}
	}
}

// Verdict is what folding a record did, and why where that is still known; false where it was not folded by this
// instance.
func (p *Projector) Verdict(sequence uint64) (v view.Verdict, reason string, ok bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.verdicts.of(sequence)
}

// Configure has groups live by other settings from here on.
func (p *Projector) Configure(ctx context.Context, s Settings) error {
	select {
	case p.settings <- s:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hand settings to the projector: %w", context.Cause(ctx))
	}
}

// Run follows the log from its beginning until ctx ends, and acts when it can. It returns the error of the log where
// that can't be gone on from, such as [journal.ErrHole], and nil after ctx has ended. Everything that it started has
// ended when it returns; the lease is released.
func (p *Projector) Run(ctx context.Context) error {
	last, err := p.cfg.Log.Last(ctx)
	if err != nil {
		return fmt.Errorf("ask the log for its newest record: %w", err)
	}
	p.mu.Lock()
	p.start = last
	p.mu.Unlock()

	ctx, cancel := context.WithCancelCause(ctx)
	defer p.tasks.Wait()
	defer cancel(nil)
	records := make(chan []journal.Record)
	p.spawn(func() { cancel(p.follow(ctx, records)) })
	p.spawn(func() { p.contend(ctx, last) })
	if p.cfg.Alive != nil {
		p.spawn(func() { p.listen(ctx) })
	}
	p.loop(ctx, records)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func (p *Projector) spawn(f func()) {
	p.tasks.Add(1)
	go func() {
		defer p.tasks.Done()
		f()
	}()
}

func (p *Projector) follow(ctx context.Context, records chan<- []journal.Record) error {
	err := p.cfg.Log.Follow(ctx, 1, func(batch []journal.Record) error {
		select {
		case records <- batch:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("follow the log: %w", err)
	}
	return err
}

// loop is the only place where the core is changed.
func (p *Projector) loop(ctx context.Context, records <-chan []journal.Record) {
	acting := newActing(ctx)
	defer acting.stop()
	p.hearing = newHearing(ctx)
	defer func() { p.hearing.cancel() }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case batch := <-records:
			p.apply(batch)
		case say := <-p.inbox:
			p.locked(say)
			p.drain()
		case s := <-p.sounds:
			if !p.hear(ctx, s) {
				continue
			}
		case s := <-p.settings:
			p.locked(func() { p.core.Configure(s) })
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		p.act(acting, timer)
	}
}

func (p *Projector) locked(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// drain runs whatever else has been said meanwhile, so that one round of the loop answers for all of it.
func (p *Projector) drain() {
	for {
		select {
		case say := <-p.inbox:
			p.locked(say)
		default:
			return
		}
	}
}

func (p *Projector) apply(batch []journal.Record) {
	for _, tell := range p.fold(batch) {
		tell()
	}
}

// fold applies records, and hands out what there is to tell the log of them.
func (p *Projector) fold(batch []journal.Record) (tell []func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received = time.Now()
	for i := range batch {
		result := p.core.Apply(&batch[i])
		if p.core.Active() {
			tell = append(tell, p.sightings.folded(&batch[i], result, p.received)...)
		}
		p.verdicts.add(batch[i].Sequence, result)
		if _, ok := batch[i].Event.Data.(*journal.Policy); ok {
			p.retarget = true
		}
		if p.cfg.Meter != nil {
			p.cfg.Meter.Applied(&batch[i], result)
		}
		for _, tell := range p.taps {
			tell(&batch[i], result)
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
	return tell
}

// now is the log's clock: the newest record's time and what has passed since it was received.
func (p *Projector) now() time.Time {
	t := p.core.View().Time()
	if p.received.IsZero() {
		return t
	}
	return t.Add(time.Since(p.received))
}

// act has the core's work done, and sets the timer for when it wants to be asked again.
func (p *Projector) act(a *acting, timer *time.Timer) {
	p.mu.Lock()
	now := p.now()
	work := p.core.Poll(now, time.Since(p.began))
	active := p.core.Active()
	p.status.Ticked = time.Now()
	p.mu.Unlock()

	ctx, began := a.sync(active)
	if began {
		p.complaints.forget()
	}
	for _, b := range work.Batches {
		p.spawn(func() { p.store(ctx, b) })
	}
	for _, push := range work.Pushes {
		p.spawn(func() { p.push(ctx, push) })
	}
	hearing := p.hearing.ctx
	for _, e := range work.Expiries {
		p.spawn(func() { p.expire(ctx, hearing, e) })
	}
	if work.Barrier {
		p.spawn(func() { p.barrier(ctx) })
	}
	if active && (p.retarget || began) {
		p.observe(ctx, a)
		p.retarget = false
	}
	wait := tick
	if !work.Wake.IsZero() {
		wait = min(wait, max(work.Wake.Sub(now), 0))
	}
	if wait > 0 {
		wait = max(wait, together)
	}
	timer.Reset(wait)
}

// together is how far apart deadlines may be that are met in one round: there are as many as candidates.
const together = 5 * time.Millisecond

// tick is how often the loop comes round when nothing happens, which is what liveness is judged by.
const tick = time.Second

// say hands something to the loop.
func (p *Projector) say(ctx context.Context, f func()) {
	select {
	case p.inbox <- f:
	case <-ctx.Done():
	}
}

// store appends a batch of the core's, again and again until it is stored or somebody else acts.
func (p *Projector) store(ctx context.Context, b Batch) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		acks, err := p.cfg.Log.Append(ctx, b.Events...)
		if err == nil {
			p.say(ctx, func() { p.core.Appended(b.ID, acks[len(acks)-1].Sequence) })
			return
		}
		if ctx.Err() != nil {
			return
		}
		p.cfg.Logger.Error("the projector's records could not be stored", "error", err, "events", len(b.Events), "retryIn", wait)
		if !sleep(ctx, wait) {
			return
		}
	}
}

// writeTimeout is how long one write may take before its outcome counts as unknown.
const writeTimeout = 10 * time.Second

func (p *Projector) push(ctx context.Context, push Push) {
	began := time.Now()
	receipt, err := p.write(ctx, push)
	if ctx.Err() != nil {
		return
	}
	took := time.Since(began)
	p.complaints.pushed(ctx, push, receipt, err, time.Now())
	p.say(ctx, func() {
		if p.cfg.Meter != nil {
			p.cfg.Meter.Pushed(push.Object, err, receipt, took)
		}
		p.core.Pushed(push, receipt, err, p.now())
	})
}

func (p *Projector) write(ctx context.Context, push Push) (Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if push.Object.Target == "" {
		return p.cfg.Leaders(push.Object.Group).Push(ctx, push.Document)
	}
	target, err := p.targets.get(push.Object.Group, push.Spec)
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return target.Push(ctx, push.Document)
}

// barrier finds the end of the log.
func (p *Projector) barrier(ctx context.Context) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		last, err := p.cfg.Log.Last(ctx)
		if err == nil {
			p.say(ctx, func() { p.core.Last(last) })
			return
		}
		if ctx.Err() != nil || !sleep(ctx, wait) {
			return
		}
	}
}

// contend takes over whenever the lease is to be had, once all that was stored at the start is folded: an instance that
// has far to go, or that can't read the log, keeps nobody from acting.
func (p *Projector) contend(ctx context.Context, stored uint64) {
	if p.Wait(ctx, stored) != nil {
		return // ctx has ended
	}
	for ctx.Err() == nil {
		held, err := p.cfg.Lease.Acquire(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.cfg.Logger.Error("the lease could not be acquired", "error", err)
			}
			sleep(ctx, time.Second)
			continue
		}
		p.lead(ctx, held)
		p.release(ctx)
	}
}

// lead appends the takeover record and acts until the lease is lost or another instance has taken over.
func (p *Projector) lead(ctx, held context.Context) {
	id, err := uuid.NewV7()
	if err != nil {
		p.cfg.Logger.Error("no id for the takeover", "error", err)
		return
	}
	acks, err := p.cfg.Log.Append(ctx, journal.Event{
		ID: id.String(), Source: "projector/" + p.cfg.Instance, Group: "_", Time: time.Now().UTC(),
		Data: &journal.Takeover{Instance: p.cfg.Instance},
	})
	if err != nil {
		p.cfg.Logger.Error("the takeover could not be stored", "error", err)
		sleep(ctx, time.Second)
		return
	}
	epoch := acks[0].Sequence
	p.cfg.Logger.Info("taking over", "instance", p.cfg.Instance, "epoch", epoch)
	p.say(ctx, func() { p.core.Lead(epoch) })
	p.untilReplaced(held, epoch)
	p.say(ctx, func() { p.core.Resign() })
	p.cfg.Logger.Info("acting no more", "instance", p.cfg.Instance, "epoch", epoch)
}

func (p *Projector) untilReplaced(held context.Context, epoch uint64) {
	for {
		changed := p.Changed()
		if p.Status().Epoch > epoch {
			return
		}
		select {
		case <-changed:
		case <-held.Done():
			return
		}
	}
}

// releaseTimeout bounds what a shutdown does for the next instance.
const releaseTimeout = 2 * time.Second

func (p *Projector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := p.cfg.Lease.Release(ctx); err != nil {
		p.cfg.Logger.Warn("the lease could not be released", "error", err)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
