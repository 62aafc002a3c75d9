package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/projector/conformance"
)

// content is what the object of a backend in memory holds.
type content struct {
	exists   bool
	sequence uint64
	entries  map[string]journal.LeaderInfo
	noise    string
}

func (c content) clone() content {
	c.entries = maps.Clone(c.entries)
	if c.entries == nil {
		c.entries = map[string]journal.LeaderInfo{}
	}
	return c
}

// change is one revision of the object.
type change struct {
	content
	revision uint64
	by       *target
}

// store is a backend in memory, of one object.
type store struct {
	bug string

	mu      sync.Mutex
	history []change
	drops   int
	fault   conformance.Fault
	held    *held
	changed chan struct{}
}

type held struct{ reached, let, done chan struct{} }

func newStore(bug string) *store {
	return &store{bug: bug, history: []change{{revision: 1}}, changed: make(chan struct{})}
}

func (s *store) newest() (change, int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history[len(s.history)-1], s.drops, s.changed
}

// swap writes on condition that the object is at a revision; 0: whatever it is at.
func (s *store) swap(revision uint64, by *target, alter func(*content)) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.history[len(s.history)-1]
	if revision != 0 && revision != last.revision {
		return 0, projector.ErrConflict
	}
	next := change{last.clone(), last.revision + 1, by}
	alter(&next.content)
	s.history = append(s.history, next)
	close(s.changed)
	s.changed = make(chan struct{})
	return next.revision, nil
}

func (s *store) take() (conformance.Fault, *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held
	s.held = nil
	return s.fault, h
}

func (s *store) Target(testing.TB) projector.Target { return &target{store: s} }

func (s *store) Read(testing.TB) conformance.Shown {
	now, _, _ := s.newest()
	return conformance.Shown{Sequence: now.sequence, Entries: now.clone().entries, Others: now.noise}
}

func (s *store) Write(_ testing.TB, c conformance.Change) {
	_, _ = s.swap(0, nil, func(o *content) { // without a condition it does not fail
		if c.Delete {
			*o = content{}
			return
		}
		o.exists = true
		for component, l := range c.Entries {
			delete(o.entries, component)
			if l != nil {
				o.entries[component] = *l
			}
		}
		if c.Sequence != 0 || c.Unfence {
			o.sequence = c.Sequence
		}
		if c.Noise != "" {
			o.noise = c.Noise
		}
	})
}

func (s *store) Fail(_ testing.TB, fault conformance.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *store) Hold(testing.TB) conformance.Held {
	h := &held{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = h
	return conformance.Held{Reached: h.reached, Let: func() { close(h.let); <-h.done }}
}

func (s *store) Drop(testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	close(s.changed)
	s.changed = make(chan struct{})
}

// target keeps all promises but the one that its store's bug breaks.
type target struct {
	store *store
	each  bool // one object for each component
	known *change
	drops int // as of the last read
}

func (t *target) PerComponent() bool { return t.each }

func (t *target) bug(name string) bool { return t.store.bug == name }

func (t *target) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	if t.known == nil || doc.Fresh && !t.bug("never reads again") {
		now, _, _ := t.store.newest()
		t.known = &now
	}
	was := *t.known
	if was.sequence > doc.Sequence && !t.bug("ignores the fence") && (!t.bug("withdraws without a fence") || !withdraws(doc)) {
		return projector.Receipt{}, fmt.Errorf("%w: %d", projector.ErrSuperseded, was.sequence)
	}
	changed := differing(was.content, doc)
	if t.fits(was.content, doc, changed) {
		return projector.Receipt{Revision: was.revision}, nil
	}
	revision, err := t.write(ctx, was.revision, func(c *content) { t.show(c, doc) })
	if err != nil {
		if !t.bug("believes what it wrote") || !errors.Is(err, projector.ErrUnknownOutcome) {
			t.known = nil
			return projector.Receipt{}, err
		}
		return projector.Receipt{}, nil
	}
	next := was
	next.content = next.clone()
	next.revision = revision
	t.show(&next.content, doc)
	t.known = &next
	return projector.Receipt{Revision: revision, Wrote: true, Changed: changed}, nil
}

func withdraws(doc *projector.Document) bool {
	for _, e := range doc.Entries {
		if e.Leader == nil {
			return true
		}
	}
	return false
}

func differing(c content, doc *projector.Document) []string {
	var names []string
	for component, e := range doc.Entries {
		have, ok := c.entries[component]
		if ok != (e.Leader != nil) || ok && have.Session != e.Leader.Session {
			names = append(names, component)
		}
	}
	slices.Sort(names)
	return names
}

// fits says whether there is nothing to write.
func (t *target) fits(c content, doc *projector.Document, changed []string) bool {
	switch {
	case t.bug("writes always"):
		return false
	case t.bug("writes content only"):
		return len(changed) == 0
	}
	return c.exists && len(changed) == 0 && c.sequence == doc.Sequence
}

func (t *target) show(c *content, doc *projector.Document) {
	if t.bug("forgets the others") {
		*c = content{entries: map[string]journal.LeaderInfo{}}
	}
	if t.bug("takes everything down") && withdraws(doc) {
		clear(c.entries)
	}
	c.exists, c.sequence = true, doc.Sequence
	for component, e := range doc.Entries {
		delete(c.entries, component)
		if e.Leader != nil {
			c.entries[component] = *e.Leader
		}
	}
}

var errBackend = errors.New("the backend is ill")

func (t *target) write(ctx context.Context, revision uint64, alter func(*content)) (uint64, error) {
	unknown := projector.ErrUnknownOutcome
	if t.bug("takes silence for failure") {
		unknown = errBackend
	}
	if t.bug("writes without a condition") {
		revision = 0
	}
	if t.bug("writes in two steps") {
		if _, err := t.store.swap(revision, t, func(c *content) { clear(c.entries) }); err != nil {
			return 0, err
		}
		revision = 0
	}
	fault, h := t.store.take()
	if h != nil {
		return t.writeHeld(ctx, h, unknown, revision, alter)
	}
	switch fault {
	case conformance.NotApplied:
		return 0, errBackend
	case conformance.Applied:
		if _, err := t.store.swap(revision, t, alter); err != nil {
			return 0, err
		}
		return 0, unknown
	}
	return t.store.swap(revision, t, alter)
}

func (t *target) writeHeld(ctx context.Context, h *held, unknown error, revision uint64, alter func(*content)) (uint64, error) {
	type answer struct {
		revision uint64
		err      error
	}
	answers := make(chan answer, 1)
	close(h.reached)
	go func() {
		<-h.let
		revision, err := t.store.swap(revision, t, alter)
		answers <- answer{revision, err}
		close(h.done)
	}()
	select {
	case a := <-answers:
		return a.revision, a.err
	case <-ctx.Done():
		return 0, unknown
	}
}

func (t *target) Read(ctx context.Context, components []string) ([]projector.Observation, error) {
	now, err := t.look(ctx)
	if err != nil {
		return nil, err
	}
	if t.bug("reads in an order of its own") {
		components = slices.Sorted(slices.Values(components))
	}
	shown := make([]projector.Observation, len(components))
	for i, component := range components {
		shown[i] = projector.Observation{Component: component, Revision: now.revision, Sequence: now.sequence}
		if l, ok := now.entries[component]; ok {
			shown[i].Entry = &l
		}
	}
	return shown, nil
}

// look is the newest revision. The first look after the connection broke fails.
func (t *target) look(ctx context.Context) (change, error) {
	now, drops, _ := t.store.newest()
	broken := t.drops != drops
	t.drops = drops
	switch {
	case ctx.Err() != nil && !t.bug("reads on"):
		return change{}, context.Cause(ctx)
	case broken && !t.bug("reads nothing for an error"):
		return change{}, errBackend
	case broken:
		return change{}, nil
	case t.bug("reads what it knows") && t.known != nil:
		return *t.known, nil
	case t.bug("reads no fence"):
		now.sequence = 0
	case t.bug("writes when it reads"):
		_, _ = t.store.swap(0, t, func(c *content) { c.noise += "." }) // without a condition it does not fail
	}
	return now, nil
}

func (t *target) Watch(ctx context.Context, report func(projector.Observation) error) error {
	last, drops, changed, err := t.full(report)
	if err != nil {
		return err
	}
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, dropped, next := t.store.newest()
		changed = next
		if dropped != drops {
			if t.bug("does not come back") {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if last, drops, changed, err = t.full(report); err != nil {
				return err
			}
			continue
		}
		if last, err = t.since(last, report); err != nil {
			return err
		}
	}
}

// full reports a gap, and then what is shown by then.
func (t *target) full(report func(projector.Observation) error) (now change, drops int, changed <-chan struct{}, err error) {
	early, _, _ := t.store.newest()
	if !t.bug("tells of no gap") {
		if err := report(projector.Observation{Gap: true}); err != nil && !t.bug("watches on") {
			return now, 0, nil, err
		}
	}
	now, drops, changed = t.store.newest()
	shown := now
	if t.bug("looks before the gap") {
		shown = early
	}
	err = t.observe(shown, report)
	if t.bug("watches on") {
		err = nil
	}
	return now, drops, changed, err
}

// since reports the changes after one, and returns the newest.
func (t *target) since(last change, report func(projector.Observation) error) (change, error) {
	t.store.mu.Lock()
	changes := slices.Clone(t.store.history)
	t.store.mu.Unlock()
	for _, c := range changes {
		if c.revision <= last.revision {
			continue
		}
		same := maps.EqualFunc(c.entries, last.entries, func(a, b journal.LeaderInfo) bool { return a.Session == b.Session })
		fell := c.sequence < last.sequence && !t.bug("looks at entries only")
		last = c
		if c.by == t || same && !fell && !t.bug("tells of everything") {
			continue
		}
		if err := t.observe(c, report); err != nil {
			return last, err
		}
	}
	return last, nil
}

func (t *target) observe(c change, report func(projector.Observation) error) error {
	o := projector.Observation{Component: conformance.First, Revision: c.revision, Sequence: c.sequence}
	if l, ok := c.entries[conformance.First]; ok {
		o.Entry = &l
	} else if t.bug("is silent on what is missing") {
		return nil
	}
	return report(o)
}
