package projector

import (
	"context"
	"errors"
	"time"

	"github.com/leadership-journal/journald/journal"
)

// Document is what one object of a backend must show.
type Document struct {
	Group     string
	Component string           // where the target is one object for each component; empty where one object shows all
	Sequence  uint64           // the fence: the highest sequence among the entries
	Projector uint64           // epoch of the instance that writes
	Entries   map[string]Entry // by component; whatever is not named here is not ours

	// Fresh has the object read from the backend itself before anything is compared: after a takeover, a conflict or
	// an unknown outcome.
	Fresh bool

	// Guarded says that the object is a system's own. It is never fenced, and an entry is only written where there is
	// none and the lock's holder, read in the same get, is the entry's candidate.
	Guarded bool
}

// Entry is what one component must show.
type Entry struct {
	Sequence uint64 // of the intent, or of what took it down
	Epoch    uint64
	Phase    string              // vacant, granted or confirmed
	Leader   *journal.LeaderInfo // nil: nothing may be shown
}

// Receipt says what a push found and did.
type Receipt struct {
	Revision uint64   // of the object as it shows the document
	Changed  []string // components whose entry was written, sorted; none where only the fence was
	Wrote    bool     // false: it showed the document already

	// Rejected are the components that the layout can't hold, with the rule. They were left out; the others are shown.
	Rejected map[string]error
}

// Observation is what a target was seen to show for one component.
type Observation struct {
	Component    string              // empty for a bare gap
	Revision     uint64              // rises with every change of the object
	Sequence     uint64              // the fence seen there; 0: none
	Entry        *journal.LeaderInfo // nil: nothing
	Holder       string              // of the lock that guards the object, where there is one
	Participants []string            // of a real latch
	Gap          bool                // events may have been missed before this one
}

// Target is one place where a group's leaders are shown: one object of a backend, or one for each component.
//
// A Target keeps these promises, which package conformance checks:
//
//   - A push that returns no error has the object show every entry of the document, and its sequence.
//   - It writes only where something differs, the sequence included, and only on condition of the version that it
//     compared, in one write: whatever else comes in between makes it fail with [ErrConflict], unwritten.
//   - An object that shows a higher sequence is left alone, whether entries are to be shown or taken down:
//     [ErrSuperseded].
//   - What it does not own stays as it is, to the byte: other keys, labels, annotations, owner references.
//   - An error that wraps neither [ErrUnknownOutcome] nor [ErrConflict] nor [ErrSuperseded] means that nothing was
//     written. [ErrPermanent] says that trying again at once is of no use, a [RetryAfter] how long the backend wants
//     to be left alone.
//
// Push is called by one goroutine at a time for one object, and by several for several.
type Target interface {
	// PerComponent says whether each component has an object of its own.
	PerComponent() bool

	// Push makes one object show the document. When ctx ends while a write is under way the outcome is unknown.
	Push(ctx context.Context, doc *Document) (Receipt, error)

	// Read says what the target shows now for each of these components, in their order, as the backend itself says and
	// not what was seen of it before. It writes nothing.
	Read(ctx context.Context, components []string) ([]Observation, error)

	// Watch reports what the target shows, beginning with a gap and a full observation, and whenever something about
	// leadership changes: entry, holder, participants, or a sequence that fell or vanished. What this Target wrote
	// itself need not be reported. It goes on through every failure of the backend until ctx ends, or report fails,
	// and returns that error.
	Watch(ctx context.Context, report func(Observation) error) error
}

// Connect makes the Target that a description means. An error says that the description can't be served; it is
// permanent.
type Connect func(group string, spec journal.Target) (Target, error)

// Leaders is where every group is shown without being described, each as a Target of its own.
type Leaders func(group string) Target

var (
	// ErrConflict says that the object changed between read and write. Nothing was written.
	ErrConflict = errors.New("the object was changed meanwhile")

	// ErrSuperseded says that the object shows a higher sequence. Nothing was written.
	ErrSuperseded = errors.New("the object shows a higher sequence")

	// ErrUnknownOutcome says that the write may have landed. The object has to be read back.
	ErrUnknownOutcome = errors.New("the outcome of the write is unknown")

	// ErrPermanent says that the write will fail until somebody changes something. Nothing was written.
	ErrPermanent = errors.New("the write is refused")
)

// RetryAfter is an error of a backend that said how long it wants to be left alone.
type RetryAfter struct {
	After time.Duration
	Err   error
}

func (e *RetryAfter) Error() string { return e.Err.Error() }

func (e *RetryAfter) Unwrap() error { return e.Err }
