package projector

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// acting is the time in which this instance acts: everything it started ends with it.
type acting struct {
	parent    context.Context
	ctx       context.Context
	cancel    context.CancelFunc
	active    bool
	observers map[watched]context.CancelFunc
}

// watched is a target that is observed.
type watched struct {
	group, name string
	configured  uint64 // the policy record that described it
}

func newActing(parent context.Context) *acting {
	a := &acting{parent: parent, observers: map[watched]context.CancelFunc{}}
	a.ctx, a.cancel = context.WithCancel(parent)
	return a
}

// sync ends the time when the core stopped acting, and says whether one has just begun.
func (a *acting) sync(active bool) (ctx context.Context, began bool) {
	if a.active && !active {
		a.stop()
		a.ctx, a.cancel = context.WithCancel(a.parent)
		a.observers = map[watched]context.CancelFunc{}
	}
	began = active && !a.active
	a.active = active
	return a.ctx, began
}

func (a *acting) stop() { a.cancel() }

// observe watches every target of every group, as described by the newest policy.
func (p *Projector) observe(ctx context.Context, a *acting) {
	want := p.watchedTargets()
	for key, cancel := range a.observers {
		if _, ok := want[key]; !ok {
			cancel()
			delete(a.observers, key)
		}
	}
	for key, spec := range want {
		if a.observers[key] == nil {
			ctx, cancel := context.WithCancel(ctx)
			a.observers[key] = cancel
			p.spawn(func() { p.watch(ctx, key.group, spec) })
		}
	}
}

func (p *Projector) watchedTargets() map[watched]journal.Target {
	want := map[watched]journal.Target{}
	p.Read(func(v *view.View) {
		for name, g := range v.Groups() {
			for _, spec := range g.Targets {
				want[watched{name, spec.Name, g.Configured}] = spec
			}
		}
	})
	return want
}

// watch appends what a target is seen to show.
func (p *Projector) watch(ctx context.Context, group string, spec journal.Target) {
	backend, _, _ := strings.Cut(spec.Kind, "/")
	source := "observer/" + p.cfg.Instance + "/" + backend
	var begun sync.Map // components
	report := func(o Observation) error {
		if o.Gap {
			_, again := begun.LoadOrStore(o.Component, true)
			p.sightings.gap(group, spec.Name, o, !again, time.Now())
		}
		return p.report(ctx, source, group, spec.Name, o)
	}
	for ctx.Err() == nil {
		target, err := p.targets.get(group, spec)
		if err == nil {
			err = target.Watch(ctx, report)
		}
		if ctx.Err() != nil {
			return
		}
		p.cfg.Logger.Error("a target can't be watched", "group", group, "target", spec.Name, "error", err)
		sleep(ctx, permanentRetry)
	}
}

// report stores an observation, however long it takes.
func (p *Projector) report(ctx context.Context, source, group, target string, o Observation) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("no id for an observation: %w", err)
	}
	event := journal.Event{
		ID: id.String(), Source: source, Group: group, Component: o.Component, Time: time.Now().UTC(),
		Data: &journal.Watch{
			Target: target, Revision: o.Revision, Sequence: o.Sequence, Entry: o.Entry, Holder: o.Holder,
			Participants: o.Participants, Gap: o.Gap,
		},
	}
	if err := event.Validate(); err != nil {
		p.cfg.Logger.Warn("an observation can't be stored", "group", group, "target", target, "component", o.Component, "error", err)
		return nil
	}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		_, err := p.cfg.Log.Append(ctx, event)
		if err == nil || ctx.Err() != nil || errors.Is(err, journal.ErrInvalid) {
			return err
		}
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// targets keeps one Target for each description.
type targets struct {
	connect Connect

	mu  sync.Mutex
	all map[string]*connected
}

type connected struct {
	spec   journal.Target
	target Target
	err    error
}

func newTargets(connect Connect) *targets {
	return &targets{connect: connect, all: map[string]*connected{}}
}

func (t *targets) get(group string, spec journal.Target) (Target, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := group + "/" + spec.Name
	c := t.all[key]
	if c == nil || !reflect.DeepEqual(c.spec, spec) || c.err != nil {
		c = &connected{spec: spec}
		c.target, c.err = t.connect(group, spec)
		t.all[key] = c
	}
	return c.target, c.err
}

func (t *targets) perComponent(group string, spec journal.Target) bool {
	target, err := t.get(group, spec)
	return err == nil && target.PerComponent()
}

// verdicts remembers what folding each record did, one byte each, and the reasons of the newest.
type verdicts struct {
	first   uint64 // sequence of all[0]
	all     []byte
	reasons [4096]struct {
		sequence uint64
		reason   string
	}
}

func (v *verdicts) add(sequence uint64, r view.Result) {
	if len(v.all) == 0 {
		v.first = sequence
	}
	v.all = append(v.all, code(r.Verdict))
	if r.Reason != "" {
		slot := &v.reasons[sequence%uint64(len(v.reasons))]
		slot.sequence, slot.reason = sequence, r.Reason
	}
}

func (v *verdicts) of(sequence uint64) (view.Verdict, string, bool) {
	if sequence < v.first || sequence-v.first >= uint64(len(v.all)) {
		return "", "", false
	}
	reason := ""
	if slot := &v.reasons[sequence%uint64(len(v.reasons))]; slot.sequence == sequence {
		reason = slot.reason
	}
	return verdictOf(v.all[sequence-v.first]), reason, true
}

// verdictCount is how many verdicts there are.
const verdictCount = 7

func verdictList() [verdictCount]view.Verdict {
	return [...]view.Verdict{
		view.Applied, view.Duplicate, view.Stale, view.UnknownSession, view.Superseded, view.Void, view.Invalid,
	}
}

func code(v view.Verdict) byte {
	for i, known := range verdictList() {
		if known == v {
			return byte(i)
		}
	}
	return verdictCount - 1 // invalid
}

func verdictOf(code byte) view.Verdict { return verdictList()[code] }
