package journal

import (
	"time"

	"github.com/leadership-journal/journald/policy"
)

// Takeover says that this instance is the projector from here on. Its epoch is the record's sequence.
type Takeover struct {
	Instance string `json:"instance"`
	extra
}

// The outcomes of a push.
const (
	OK         = "ok"         // the target shows the intent
	Superseded = "superseded" // the target shows a higher sequence and was left alone
	Failed     = "failed"     // nothing was written
	Unknown    = "unknown"    // it may have been written: read back before anything else
)

// Push is what came of one write to a target for one component.
type Push struct {
	Target     string          `json:"target"`
	Intent     uint64          `json:"intent"`  // sequence of the intent or withdrawal that was to be shown
	Attempt    int             `json:"attempt"` // from 1, anew for each intent
	Outcome    string          `json:"outcome"`
	Revision   uint64          `json:"revision,omitzero"`
	Error      string          `json:"error,omitzero"`
	Permanent  bool            `json:"permanent,omitzero"` // trying again at once is of no use
	RetryAfter policy.Duration `json:"retryAfter,omitzero"`
	Decision
	extra
}

// Yield says that the holder must give leadership up.
type Yield struct {
	Session string `json:"session"`
	Reason  string `json:"reason"`
	To      string `json:"to,omitzero"`
	Decision
	extra
}

// Hold says that the holder should yield, but stays because nobody fit is there.
type Hold struct {
	Session string `json:"session"`
	Reason  string `json:"reason"`
	Decision
	extra
}

// Stale says that a candidate's agent has gone silent.
type Stale struct {
	Candidate   string    `json:"candidate"`
	Incarnation string    `json:"incarnation"`
	Since       time.Time `json:"since"`
	Decision
	extra
}

// Alert says that a condition began.
type Alert struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Decision
	extra
}

// Clear says that it ended.
type Clear struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Decision
	extra
}

// Checkpoint states the hash of the view and the Merkle root of the journal up to a sequence.
type Checkpoint struct {
	Sequence uint64 `json:"sequence"`
	ViewHash string `json:"viewHash"`
	TreeSize uint64 `json:"treeSize"`
	RootHash string `json:"rootHash"`
	extra
}
