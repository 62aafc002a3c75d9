package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Backend makes the objects that a scenario's targets stand for.
type Backend interface {
	// Check says why the backend can't show what a target is to show of these components, by their description alone;
	// nil: it can.
	Check(spec journal.Target, components []string) error

	// Open makes what one target stands for anew, empty.
	Open(ctx context.Context, group string, spec journal.Target) (Object, error)
}

// Object is what one target stands for, as the world sees and changes it beside journald: one object of a backend that
// shows every component, or one for each of them, as the target's PerComponent says. Before every write that journald
// makes, an implementation calls [Gate] with the context of the push.
type Object interface {
	// Target is what a projector writes and reads. Every instance has one of its own.
	Target() (projector.Target, error)

	// Show is what readers see now in the object that shows a component; it is of no importance which, where one object
	// shows all.
	Show(ctx context.Context, component string) (State, error)

	// Write has somebody else change one component's entry, nil for none; a sequence other than 0 sets the fence too.
	Write(ctx context.Context, change Change) error

	// Drop has somebody else delete everything, fences too.
	Drop(ctx context.Context) error

	// Close removes what Open made.
	Close(ctx context.Context) error
}

// State is what one object shows.
type State struct {
	Revision uint64
	Sequence uint64 // the fence, 0: none
	Entries  map[string]*journal.LeaderInfo
}

// Change is a foreign write.
type Change struct {
	Component string
	Touch     bool                // the entry stays as it is, and only the object's version changes
	Entry     *journal.LeaderInfo // nil: none
	By        string
	Holder    string // of the lock that guards the object
	Sequence  uint64 // 0: the fence stays as it is
}

// simulated is a backend in memory, with the same rules as a real one: one version for each object, writes only on
// condition of the version that was read.
type simulated struct{}

// Check has nothing against any target.
func (simulated) Check(journal.Target, []string) error { return nil }

// Open makes an object that does not exist yet.
func (simulated) Open(context.Context, string, journal.Target) (Object, error) {
	return &store{clock: 10}, nil
}

// store is one simulated object.
type store struct {
	clock  uint64 // revisions of the whole backend: they rise even while the object is not there
	exists bool
	state  State
	holder string
}

// Target is a writer of the object.
func (s *store) Target() (projector.Target, error) { return &simTarget{s}, nil }

// Show is what the object shows.
func (s *store) Show(context.Context, string) (State, error) {
	shown := State{Revision: s.clock, Sequence: s.state.Sequence, Entries: maps.Clone(s.state.Entries)}
	if s.exists {
		shown.Revision = s.state.Revision
	}
	return shown, nil
}

// Write is a foreign one.
func (s *store) Write(_ context.Context, c Change) error {
	s.touch()
	if !c.Touch {
		s.set(c.Component, c.Entry)
	}
	if c.Sequence != 0 {
		s.state.Sequence = c.Sequence
	}
	s.holder = c.Holder
	return nil
}

// Drop deletes it, fence and all.
func (s *store) Drop(context.Context) error {
	s.clock++
	s.exists, s.state = false, State{}
	return nil
}

// Close has nothing to remove.
func (s *store) Close(context.Context) error { return nil }

func (s *store) touch() {
	s.clock++
	s.exists, s.state.Revision = true, s.clock
	if s.state.Entries == nil {
		s.state.Entries = map[string]*journal.LeaderInfo{}
	}
}

func (s *store) set(component string, entry *journal.LeaderInfo) {
	if entry == nil {
		delete(s.state.Entries, component)
	} else {
		s.state.Entries[component] = entry
	}
}

// simTarget writes a store as an adapter writes its backend.
type simTarget struct{ store *store }

// PerComponent is false: one object shows all.
func (t *simTarget) PerComponent() bool { return false }

// Push compares and writes.
func (t *simTarget) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	s := t.store
	if !doc.Guarded && s.state.Sequence > doc.Sequence {
		return projector.Receipt{}, fmt.Errorf("%w: %d", projector.ErrSuperseded, s.state.Sequence)
	}
	changed, differs := t.compare(doc)
	read := s.version()
	receipt := projector.Receipt{Revision: read, Changed: changed}
	if !differs {
		return receipt, nil
	}
	err := Gate(ctx, func(context.Context) error {
		if s.version() != read {
			return projector.ErrConflict
		}
		s.touch()
		for _, name := range changed {
			s.set(name, doc.Entries[name].Leader)
		}
		if !doc.Guarded {
			s.state.Sequence = doc.Sequence
		}
		receipt.Revision, receipt.Wrote = s.state.Revision, true
		return nil
	})
	var fault *Injected
	switch {
	case errors.As(err, &fault):
		return projector.Receipt{}, fault.meaning()
	case err != nil:
		return projector.Receipt{}, err
	}
	return receipt, nil
}

// compare lists the components whose entry differs, and says whether there is anything to write.
func (t *simTarget) compare(doc *projector.Document) (changed []string, differs bool) {
	for name, e := range doc.Entries {
		is := t.store.state.Entries[name]
		if doc.Guarded && (is != nil || e.Leader == nil || t.store.holder != "" && t.store.holder != e.Leader.Candidate) {
			continue
		}
		if !same(is, e.Leader) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed, len(changed) > 0 || !doc.Guarded && t.store.state.Sequence != doc.Sequence
}

func (s *store) version() uint64 {
	if !s.exists {
		return 0
	}
	return s.state.Revision
}

// Read says what the store shows.
func (t *simTarget) Read(_ context.Context, components []string) ([]projector.Observation, error) {
	shown := make([]projector.Observation, len(components))
	for i, name := range components {
		shown[i] = projector.Observation{
			Component: name, Revision: t.store.version(), Sequence: t.store.state.Sequence,
			Entry: t.store.state.Entries[name], Holder: t.store.holder,
		}
	}
	return shown, nil
}

// Watch is not used: the world itself is the observer.
func (t *simTarget) Watch(ctx context.Context, _ func(projector.Observation) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func same(a, b *journal.LeaderInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Session == b.Session && a.Address == b.Address && a.Candidate == b.Candidate
}

// gateKey is where a push's context carries its gate.
type gateKey struct{}

// gate decides what becomes of a write.
type gate func(ctx context.Context, write func(context.Context) error) error

// Gate runs a write as the scenario wants it: at once, late, in vain, or with its answer lost. Outside of a scenario
// it just runs it. The context that the write gets outlives that of its caller: a request that is on its way may
// still land.
func Gate(ctx context.Context, write func(context.Context) error) error {
	if g, ok := ctx.Value(gateKey{}).(gate); ok {
		return g(ctx, write)
	}
	return write(ctx)
}

// Injected is the error of a write that a scenario had fail. A backend turns it into what its client would see.
type Injected struct {
	Word string // unavailable, throttled, forbidden, conflict, not-found, invalid or timeout
}

func (e *Injected) Error() string { return "injected: " + e.Word }

// meaning is what an adapter would make of it.
func (e *Injected) meaning() error {
	switch e.Word {
	case "throttled":
		return &projector.RetryAfter{After: throttle, Err: e}
	case "conflict":
		return projector.ErrConflict
	case "forbidden", "not-found", "invalid":
		return fmt.Errorf("%w: %w", projector.ErrPermanent, e)
	case "timeout":
		return fmt.Errorf("%w: %w", projector.ErrUnknownOutcome, e)
	}
	return e
}
