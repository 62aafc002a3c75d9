package projector

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// Backoff of writes that failed.
const (
	firstRetry     = time.Second
	lastRetry      = 30 * time.Second
	permanentRetry = 5 * time.Minute
	firstConflict  = 20 * time.Millisecond // after a conflict: somebody else is writing, nothing is wrong
	lastConflict   = time.Second
	spread         = time.Second // over which writes come back that waited for a target
)

// How many writes may be under way: to one target, and to the built-in bucket, which commits what comes together.
const (
	parallel        = 64
	parallelLeaders = 1000
)

// crowded says whether as many writes are under way as the target takes.
func (c *Core) crowded(target string) bool {
	if target == "" {
		return c.running[target] >= parallelLeaders
	}
	return c.running[target] >= parallel
}

// writer is the only one that writes an object. Its mailbox is the view: it composes what is newest whenever it gets
// to write.
type writer struct {
	object Object
	state  writerState

	verify   bool      // read the object even if nothing is due
	reread   bool      // do not trust what was read before
	again    bool      // something came since the last write began
	wanted   bool      // the log is to be read to its end first
	behind   uint64    // until the view is here
	retryAt  time.Time // zero: at once
	failures int       // in a row
	patient  bool      // what failed last is not to be tried before its time, whatever happens

	push     uint64            // id of the one under way
	document *Document         // under way, or tried last
	due      []string          // components that the document was due for
	rejected map[string]uint64 // components that the layout can't hold, with the intent that says so
}

type writerState int

const (
	idle writerState = iota
	queued
	sleeping  // until retryAt, or for something to come
	asking    // for the end of the log
	running   // a write is under way
	recording // its push record is on its way to the journal
)

// want has an object looked at.
func (c *Core) want(o Object) *writer {
	w := c.writers[o]
	if w == nil {
		w = &writer{object: o}
		c.writers[o] = w
	}
	w.again = true
	if w.state == idle || w.state == sleeping {
		c.enqueue(w)
	}
	return w
}

func (c *Core) enqueue(w *writer) {
	w.state = queued
	c.queue = append(c.queue, w)
}

// sleep has the writer looked at again at a time, or when it is wanted.
func (c *Core) sleep(w *writer, until time.Time) {
	w.state, w.retryAt = sleeping, until
	c.sleepers = append(c.sleepers, w)
}

// stepAll starts every write that can be.
func (c *Core) stepAll(now time.Time, work *Work) {
	c.sleepers = slices.DeleteFunc(c.sleepers, func(w *writer) bool {
		if w.state == sleeping && !w.retryAt.After(now) {
			c.enqueue(w)
		}
		return w.state != sleeping
	})
	queue := c.queue
	c.queue = nil
	slices.SortFunc(queue, func(a, b *writer) int { return compareObjects(a.object, b.object) })
	for _, w := range queue {
		c.step(w, now, work)
	}
	for _, w := range c.sleepers {
		work.wake(w.retryAt)
	}
	if len(c.asked) > 0 && len(c.answered) == 0 {
		work.Barrier = true
		c.answered, c.asked = c.asked, nil
	}
}

// step starts the writer's write, puts it to sleep, or ends it.
func (c *Core) step(w *writer, now time.Time, work *Work) {
	if c.view.Sequence() < w.behind || c.crowded(w.object.Target) {
		c.enqueue(w)
		return
	}
	doc, due, wake := c.compose(w, now)
	switch {
	case doc == nil, len(due) == 0 && !w.verify && wake.IsZero():
		c.end(w)
	case len(due) == 0 && !w.verify:
		c.sleep(w, wake)
	case w.retryAt.After(now) && !w.cutsShort(doc):
		c.sleep(w, w.retryAt)
	case w.wanted:
		w.state = asking
		c.asked = append(c.asked, w)
	default:
		c.start(w, doc, due, work)
	}
}

// end forgets a writer that has nothing to do.
func (c *Core) end(w *writer) {
	w.state = idle
	if len(w.rejected) == 0 {
		delete(c.writers, w.object)
	}
}

// cutsShort says whether a newer intent ends the wait.
func (w *writer) cutsShort(doc *Document) bool {
	return w.document != nil && doc.Sequence > w.document.Sequence
}

func (c *Core) start(w *writer, doc *Document, due []string, work *Work) {
	doc.Fresh = doc.Fresh || w.reread
	if w.cutsShort(doc) {
		w.failures = 0
	}
	w.state, w.again = running, false
	w.document, w.due, w.retryAt = doc, due, time.Time{}
	c.running[w.object.Target]++
	c.nextID++
	w.push = c.nextID
	push := Push{ID: w.push, Object: w.object, Document: doc}
	if spec := c.view.Group(w.object.Group).TargetSpec(w.object.Target); spec != nil {
		push.Spec = *spec
	}
	work.Pushes = append(work.Pushes, push)
}

// Last says that the newest sequence of the log was this one after the barrier was asked for.
func (c *Core) Last(sequence uint64) {
	for _, w := range c.answered {
		w.wanted, w.behind = false, sequence
		c.enqueue(w)
	}
	c.answered = nil
}

// compose is what the object must show by the newest view, the components whose target is due, and when one that is
// not due yet will be. The document is nil where the object is none of ours any more.
func (c *Core) compose(w *writer, now time.Time) (doc *Document, due []string, wake time.Time) {
	g := c.view.Group(w.object.Group)
	if w.object.Target == "" {
		return c.composeLeaders(g, w)
	}
	spec := g.TargetSpec(w.object.Target)
	if spec == nil || spec.Observe {
		return nil, nil, wake
	}
	doc = &Document{Group: g.Name, Component: w.object.Component, Projector: c.leading, Guarded: spec.Guarded, Entries: map[string]Entry{}}
	for name, component := range c.components(g, w.object) {
		if component.Intent == nil || !spec.Shows(name) {
			continue
		}
		is, at := dueNow(g, component, spec, now)
		is = is && w.rejected[name] != component.Intent.Sequence
		if !at.IsZero() && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
		if is {
			due = append(due, name)
			doc.Fresh = doc.Fresh || component.Targets[spec.Name].Overtaken() // an adapter must not go by its last write
		}
		if is || !spec.Guarded {
			doc.show(component)
		}
	}
	if len(doc.Entries) == 0 && wake.IsZero() {
		return nil, nil, wake
	}
	slices.Sort(due)
	return doc, due, wake
}

func (c *Core) components(g *view.Group, o Object) map[string]*view.Component {
	if o.Component == "" {
		return g.Components
	}
	if component := g.Components[o.Component]; component != nil {
		return map[string]*view.Component{o.Component: component}
	}
	return nil
}

// composeLeaders is the document of the built-in key-value entry of one component. It is due whenever it is wanted.
func (c *Core) composeLeaders(g *view.Group, w *writer) (*Document, []string, time.Time) {
	component := g.Components[w.object.Component]
	if component == nil || component.Shown == 0 || !w.again && w.failures == 0 {
		return nil, nil, time.Time{}
	}
	doc := &Document{
		Group: g.Name, Component: component.Name, Projector: c.leading, Sequence: component.Shown,
		Entries: map[string]Entry{component.Name: {
			Sequence: component.Shown, Epoch: component.Epoch, Phase: component.Phase(), Leader: component.Leader(),
		}},
	}
	return doc, []string{component.Name}, time.Time{}
}

func (d *Document) show(c *view.Component) {
	d.Entries[c.Name] = Entry{Sequence: c.Intent.Sequence, Epoch: c.Intent.Epoch, Phase: c.Phase(), Leader: c.Intent.Leader}
	d.Sequence = max(d.Sequence, c.Intent.Sequence)
}

// dueNow says whether a component's target is to be written, or when it will be.
func dueNow(g *view.Group, c *view.Component, spec *journal.Target, now time.Time) (bool, time.Time) {
	t := c.Targets[spec.Name]
	if t == nil || !t.Due {
		return false, time.Time{}
	}
	if !spec.Guarded || t.ErasedAt.IsZero() {
		return true, time.Time{}
	}
	at := t.ErasedAt.Add(time.Duration(g.Policy.GraceAfterErase))
	if at.After(now) {
		return false, at
	}
	return true, time.Time{}
}

// Pushed says what came of a push. now is the log's clock.
func (c *Core) Pushed(p Push, receipt Receipt, err error, now time.Time) {
	o := p.Object
	w := c.writers[o]
	if w == nil || w.state != running || w.push != p.ID {
		return // from before we were replaced
	}
	c.running[o.Target]--
	wait := w.judge(c.opts.jitter, err)
	if err == nil && !receipt.Wrote {
		wait = firstRetry // if it is due all the same, somebody is wrong: do not spin
	}
	w.retryAt = now.Add(wait)
	w.reject(receipt)
	if o.Target != "" && c.record(w, receipt, err, wait, now) {
		w.state = recording
		return
	}
	c.enqueue(w)
}

// judge says how long to wait before the next attempt, if one is needed, and whether the object and the log have to be
// read before it.
func (w *writer) judge(jitter func(time.Duration) time.Duration, err error) time.Duration {
	if err == nil || errors.Is(err, ErrSuperseded) {
		w.reread, w.verify, w.failures = err != nil, false, 0
		return 0
	}
	n := w.failures
	w.reread, w.wanted, w.failures = true, true, n+1
	var asked *RetryAfter
	w.patient = errors.Is(err, ErrPermanent) || errors.As(err, &asked)
	switch {
	case errors.Is(err, ErrPermanent):
		return permanentRetry
	case n == 0 && errors.Is(err, ErrConflict):
		return 0 // read again and compare at once
	case errors.Is(err, ErrConflict):
		return jitter(min(firstConflict<<min(n, 10), lastConflict))
	case errors.As(err, &asked):
		return max(asked.After, jitter(min(firstRetry<<min(n, 10), lastRetry)))
	}
	return jitter(min(firstRetry<<min(n, 10), lastRetry))
}

// hurry ends the backoff: a write that is under way and fails all the same begins with the shortest wait again.
func (w *writer) hurry(at time.Time) {
	w.failures = 0
	if w.retryAt.After(at) {
		w.retryAt = at
	}
}

// reject remembers what the layout can't hold, so that it is not tried over and over.
func (w *writer) reject(receipt Receipt) {
	for name := range receipt.Rejected {
		if w.rejected == nil {
			w.rejected = map[string]uint64{}
		}
		w.rejected[name] = w.document.Entries[name].Sequence
	}
}

// jitter spreads a wait over its upper half, so that what failed together does not come back together.
func (o *Options) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(o.Random.Int64N(int64(d/2)+1))
}

// recorded goes on with a writer whose push record is folded.
func (c *Core) recorded(w *writer) {
	if c.writers[w.object] != w {
		return
	}
	w.state = idle
	c.enqueue(w)
}

// mostRecords is how many push records are appended in one batch.
const mostRecords = 500

// record appends what came of an attempt: one push record for each component that it was due for, or that it changed.
// An attempt that found everything as the journal knows it leaves none.
func (c *Core) record(w *writer, receipt Receipt, err error, wait time.Duration, now time.Time) bool {
	var events []journal.Event
	for _, name := range w.concerned(receipt, err) {
		why := err
		if rule := receipt.Rejected[name]; rule != nil && err == nil {
			why = fmt.Errorf("%w: %w", ErrPermanent, rule)
		}
		if p := c.pushRecord(w, name, why); p != nil {
			p.Revision = receipt.Revision
			if p.Outcome == journal.Failed || p.Outcome == journal.Unknown {
				p.RetryAfter = policy.Duration(wait)
			}
			events = append(events, c.event(w.object.Group, name, p, now))
		}
	}
	if len(events) == 0 {
		return false
	}
	for len(events) > mostRecords {
		c.append(batch{}, events[:mostRecords])
		events = events[mostRecords:]
	}
	c.append(batch{writer: w}, events)
	return true
}

// concerned are the components of an attempt that leave a record.
func (w *writer) concerned(receipt Receipt, err error) []string {
	names := slices.Concat(w.due, receipt.Changed, slices.Collect(maps.Keys(receipt.Rejected)))
	if err != nil && len(names) == 0 && !errors.Is(err, ErrSuperseded) {
		names = slices.Collect(maps.Keys(w.document.Entries)) // whatever they show is not known
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Core) pushRecord(w *writer, component string, err error) *journal.Push {
	g := c.view.Group(w.object.Group)
	state := g.Components[component]
	if state == nil || state.Intent == nil {
		return nil
	}
	entry := w.document.Entries[component]
	p := &journal.Push{
		Target: w.object.Target, Intent: entry.Sequence, Attempt: 1, Outcome: outcome(err),
		Decision: journal.Decision{Projector: c.leading, Basis: g.Version, Cause: []uint64{entry.Sequence}},
	}
	if t := state.Targets[p.Target]; t != nil && state.Intent.Sequence == entry.Sequence {
		p.Attempt = t.Attempts + 1
	}
	if err != nil {
		p.Error, p.Permanent = bounded(err.Error()), errors.Is(err, ErrPermanent)
	}
	return p
}

func outcome(err error) string {
	switch {
	case err == nil:
		return journal.OK
	case errors.Is(err, ErrSuperseded):
		return journal.Superseded
	case errors.Is(err, ErrUnknownOutcome):
		return journal.Unknown
	}
	return journal.Failed
}

// bounded keeps a backend's answer within what an event may hold.
func bounded(s string) string {
	const most = 1024
	s = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s), "?")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func (c *Core) event(group, component string, p *journal.Push, now time.Time) journal.Event {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d\x00%d\x00%d", group, component, p.Target, p.Intent, p.Attempt, c.leading))
	return journal.Event{
		ID: "push-" + hex.EncodeToString(sum[:16]), Source: c.source, Group: group, Component: component, Time: now, Data: p,
	}
}
