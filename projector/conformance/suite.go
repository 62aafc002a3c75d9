package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// What documents are about.
const (
	Group  = "conformance"
	First  = "restserver"
	Second = "dispatcher"
)

// Suite is a kind of target to be checked. New and Visible are required.
type Suite struct {
	// New makes an object that nothing else uses and that does not exist yet.
	New func(tb testing.TB) Object

	// Visible is what a reader of the layout gets to see of a leader. Sessions are UUIDs, addresses are URLs.
	Visible func(journal.LeaderInfo) journal.LeaderInfo

	// Unwatched says that Watch reports nothing.
	Unwatched bool

	// Patience is how long anything may take that has to happen; 0: half a minute.
	Patience time.Duration
}

// Object is one place in the backend. Its methods fail the test when they can't do what they say; they may be called
// while a target is at work.
type Object interface {
	// Target makes a Target of the object that shares nothing with others but the backend, as after a crash.
	Target(tb testing.TB) projector.Target

	// Read is what readers see now, by the backend's own means.
	Read(tb testing.TB) Shown

	// Write changes the object as somebody else would, in one write that does not fail; it makes it where there is none.
	Write(tb testing.TB, change Change)

	// Fail has all writes of the targets fail so from here on. Reads go on.
	Fail(tb testing.TB, fault Fault)

	// Hold keeps the next write of the targets back, as it was composed. Those after it pass.
	Hold(tb testing.TB) Held

	// Drop breaks what the targets are connected by; they can connect anew at once.
	Drop(tb testing.TB)
}

// Shown is an object at one moment.
type Shown struct {
	Sequence uint64                        // the fence; 0: none
	Entries  map[string]journal.LeaderInfo // what is visible of the leaders, by component
	Others   string                        // all that is not the target's: equal text, equal content
}

// Change is what somebody else does to an object.
type Change struct {
	Entries  map[string]*journal.LeaderInfo // nil: taken away
	Sequence uint64                         // of another fence; 0: the fence stays
	Unfence  bool                           // the fence is taken away
	Noise    string                         // something that is not about leadership is changed to this
	Delete   bool                           // the whole object goes
}

// Fault is how writes fail.
type Fault int

// The faults.
const (
	NoFault    Fault = iota
	NotApplied       // answered with an error, and not carried out
	Applied          // carried out, and answered with an error
)

// Held is a write that was kept back. It may have been given up by who made it.
type Held struct {
	Reached <-chan struct{} // closed when there is one
	Let     func()          // carries it out, and returns when the backend has answered it
}

const patience = 30 * time.Second

// Run runs every check that applies to the target, each on an object of its own.
func (s Suite) Run(t *testing.T) {
	t.Run("push", s.runPush)
	t.Run("faults", s.runFaults)
	t.Run("frozen writes", s.runFrozen)
	t.Run("read", s.runRead)
	if !s.Unwatched {
		t.Run("watch", s.runWatch)
	}
}

// checks runs named checks, each with a world of its own.
func (s Suite) checks(t *testing.T, all map[string]func(w *world)) {
	for name, check := range all {
		t.Run(name, func(t *testing.T) { check(s.world(t)) })
	}
}

// world is one object and a target of it.
type world struct {
	*testing.T
	suite  Suite
	object Object
	target projector.Target
}

func (s Suite) world(t *testing.T) *world {
	o := s.New(t)
	return &world{T: t, suite: s, object: o, target: o.Target(t)}
}

// crash goes on with a target that knows nothing.
func (w *world) crash() { w.target = w.object.Target(w) }

// shared says whether one object shows several components.
func (w *world) shared() bool { return !w.target.PerComponent() }

// leader is the n-th leader.
func leader(n int) *journal.LeaderInfo {
	return &journal.LeaderInfo{
		Session:   fmt.Sprintf("01234567-89ab-4def-8edc-%012d", n),
		Candidate: fmt.Sprintf("http://10.0.0.%d:8081", n),
		Address:   fmt.Sprintf("http://10.0.0.%d:8081", n),
	}
}

// one is a document that shows, or takes down, the first component.
func (w *world) one(sequence uint64, l *journal.LeaderInfo) *projector.Document {
	return w.document(sequence, map[string]*journal.LeaderInfo{First: l})
}

func (w *world) document(sequence uint64, leaders map[string]*journal.LeaderInfo) *projector.Document {
	doc := &projector.Document{Group: Group, Sequence: sequence, Projector: 1, Entries: map[string]projector.Entry{}}
	if w.target.PerComponent() {
		doc.Component = First
	}
	for component, l := range leaders {
		e := projector.Entry{Sequence: sequence, Epoch: sequence, Phase: "confirmed", Leader: l}
		if l == nil {
			e.Phase = "vacant"
		}
		doc.Entries[component] = e
	}
	return doc
}

func fresh(doc *projector.Document) *projector.Document {
	again := *doc
	again.Fresh = true
	return &again
}

// push has to succeed.
func (w *world) push(doc *projector.Document) projector.Receipt {
	w.Helper()
	receipt, err := w.target.Push(w.bounded(), doc)
	require.NoError(w, err)
	require.Empty(w, receipt.Rejected)
	w.requireShows(doc)
	return receipt
}

// bounded ends with the test, or when something hangs.
func (w *world) bounded() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), cmp.Or(w.suite.Patience, patience))
	w.Cleanup(cancel)
	return ctx
}

// requireShows compares what readers see with a document.
func (w *world) requireShows(doc *projector.Document) {
	w.Helper()
	shown := w.object.Read(w)
	require.Equal(w, doc.Sequence, shown.Sequence, "the sequence that is shown")
	for component, e := range doc.Entries {
		w.requireEntry(shown, component, e.Leader)
	}
}

func (w *world) requireEntry(shown Shown, component string, l *journal.LeaderInfo) {
	w.Helper()
	have, ok := shown.Entries[component]
	if l == nil {
		require.False(w, ok, "%s is shown: %v", component, have)
		return
	}
	require.True(w, ok, "%s is not shown", component)
	require.Equal(w, w.suite.Visible(*l), have)
}

// requireRefused pushes what must fail with an error and leave the object alone.
func (w *world) requireRefused(doc *projector.Document, target error) {
	w.Helper()
	before := w.object.Read(w)
	receipt, err := w.target.Push(w.bounded(), doc)
	require.ErrorIs(w, err, target)
	require.False(w, receipt.Wrote)
	require.Equal(w, before, w.object.Read(w))
}

// requireHonest checks that an error that claims that nothing was written tells the truth.
func (w *world) requireHonest(err error, before Shown) {
	w.Helper()
	require.Error(w, err)
	if !errors.Is(err, projector.ErrUnknownOutcome) {
		require.Equal(w, before, w.object.Read(w), "written, for all that the error says: %v", err)
	}
}
