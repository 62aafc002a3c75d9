package journal

import (
	"github.com/leadership-journal/journald/policy"
)

// Join says that a candidate may lead these components from here on.
type Join struct {
	Candidate   string            `json:"candidate"`
	Incarnation string            `json:"incarnation"` // new at every start of the process
	Components  []string          `json:"components"`
	Address     string            `json:"address,omitzero"`
	Priority    int               `json:"priority,omitzero"` // higher first
	Labels      map[string]string `json:"labels,omitempty"`
	extra
}

// Leave says that it may not any more.
type Leave struct {
	Candidate   string `json:"candidate"`
	Incarnation string `json:"incarnation"`
	Reason      string `json:"reason,omitzero"`
	extra
}

// Grant says that the elector gave a candidate leadership.
type Grant struct {
	Candidate string `json:"candidate"`
	Session   string `json:"session"`
	Lock      *Lock  `json:"lock,omitzero"`
	*Decision        // where the projector itself elects
	extra
	lock extra
}

// Revoke says that a session has ended.
type Revoke struct {
	Session   string `json:"session"`
	Candidate string `json:"candidate,omitzero"`
	Reason    string `json:"reason"` // lost, yielded, shutdown, expired, …
	*Decision
	extra
}

// Confirm is one attempt of a session's holder to say where it can be reached.
type Confirm struct {
	Session    string            `json:"session"`
	Candidate  string            `json:"candidate"`
	Address    string            `json:"address"`
	Properties map[string]string `json:"properties,omitempty"`
	Attempt    uint64            `json:"attempt"` // rises within the session
	extra
}

// Ready is the holder's own word on whether its leader work runs.
type Ready struct {
	Session string `json:"session"`
	Ready   bool   `json:"ready"`
	Reason  string `json:"reason,omitzero"`
	extra
}

// Release says that the holder has stopped its leader work.
type Release struct {
	Session string `json:"session"`
	Reason  string `json:"reason"`
	extra
}

// Withdraw takes the leader info down. Only operators may leave the session out.
type Withdraw struct {
	Session string `json:"session,omitzero"`
	Actor   string `json:"actor,omitzero"`
	Reason  string `json:"reason"`
	extra
}

// Retry says that a service's confirmation failed and will be tried again.
type Retry struct {
	Session string          `json:"session"`
	Attempt uint64          `json:"attempt"`
	Error   string          `json:"error"`
	After   policy.Duration `json:"after"`
	extra
}

// Health is one run of one health check.
type Health struct {
	Candidate   string `json:"candidate"`
	Incarnation string `json:"incarnation"`
	Check       string `json:"check"`
	Status      string `json:"status"` // pass or fail
	Reason      string `json:"reason,omitzero"`
	Run         uint64 `json:"run"` // rises within the check and the incarnation
	extra
}

// Watch says that a target was seen to show this. It is an observation, never an intent.
type Watch struct {
	Target       string      `json:"target"`
	Revision     uint64      `json:"revision"`
	Sequence     uint64      `json:"sequence,omitzero"` // the fence seen there; 0: none
	Entry        *LeaderInfo `json:"entry"`             // nil: nothing there
	Holder       string      `json:"holder,omitzero"`   // of the lock that guards the target
	Participants []string    `json:"participants,omitempty"`
	Gap          bool        `json:"gap,omitzero"` // events may have been missed before this one
	extra
	entry extra
}
