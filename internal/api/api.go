// Package api has what goes over HTTP between a journald and whoever asks it, as Go types. The server writes them, the
// command line reads them; both have the same names for the same things.
package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// Ack answers for one event that was appended.
type Ack struct {
	Sequence  uint64       `json:"sequence"`
	ID        string       `json:"id"`
	Duplicate bool         `json:"duplicate"`
	Verdict   view.Verdict `json:"verdict,omitzero"`   // with wait=applied or wait=published
	Reason    string       `json:"reason,omitzero"`    // why, where the verdict alone does not say it
	Published bool         `json:"published,omitzero"` // with wait=published: every target shows it
}

// Order answers for an operator's order that is stored.
type Order struct {
	Kind      string `json:"kind"`
	Group     string `json:"group"`
	Component string `json:"component,omitzero"`
	Actor     string `json:"actor"`
	Ack
	AsOf    uint64        `json:"asOf"`              // sequence of the view that this rests on
	Leader  *Leader       `json:"leader,omitzero"`   // of a transfer: who leads as of then
	Targets []TargetState `json:"targets,omitempty"` // of a transfer: how far each of them is
}

// Rehearsal says what would come of an operator's order. Nothing was stored.
type Rehearsal struct {
	Kind      string          `json:"kind"`
	Group     string          `json:"group"`
	Component string          `json:"component,omitzero"`
	Actor     string          `json:"actor"`
	AsOf      uint64          `json:"asOf"` // sequence of the view that it was tried on
	Verdict   view.Verdict    `json:"verdict"`
	Reason    string          `json:"reason,omitzero"`
	Advice    string          `json:"advice,omitzero"` // what to do where it would be refused
	Decided   []Decided       `json:"decided"`         // by the projector, because of the order, in order
	Prospects []view.Prospect `json:"prospects"`       // who would lead the components that it concerns
}

// Decided is what the projector would decide: one record.
type Decided struct {
	Kind      string `json:"kind"`
	Component string `json:"component,omitzero"` // empty for what concerns the group
	Name      string `json:"name,omitzero"`      // of an alert
	Candidate string `json:"candidate,omitzero"` // that it is about: the holder that yields, the one that is granted
	To        string `json:"to,omitzero"`        // of a yield: who is to take over
	Reason    string `json:"reason,omitzero"`
}

// Record is one record of the journal.
type Record struct {
	Sequence uint64         `json:"sequence"`
	Time     time.Time      `json:"time"` // the journal's own
	Subject  string         `json:"subject"`
	Kind     string         `json:"kind,omitzero"`
	Verdict  view.Verdict   `json:"verdict,omitzero"` // missing while it is not folded yet
	Reason   string         `json:"reason,omitzero"`
	Event    jsontext.Value `json:"event,omitzero"` // as it was stored
	Text     string         `json:"text,omitzero"`  // in place of event, where what was stored is not JSON
}

// Records is a page of them.
type Records struct {
	Records []Record `json:"records"`
	Next    string   `json:"next,omitzero"` // cursor of the next page; missing at the end
}

// Row is what there is to say about a component in one line.
type Row struct {
	Group     string        `json:"group"`
	Component string        `json:"component"`
	Phase     string        `json:"phase"`
	Epoch     uint64        `json:"epoch,omitzero"`
	Candidate string        `json:"candidate,omitzero"` // the holder of the term
	Session   string        `json:"session,omitzero"`
	Since     time.Time     `json:"since,omitzero"`
	Ready     string        `json:"ready,omitzero"`
	Leader    *Intent       `json:"leader,omitzero"`   // what targets must show; it may be an earlier term's
	Released  bool          `json:"released,omitzero"` // the holder has said that it stopped
	Yield     *view.Yield   `json:"yield,omitzero"`    // the holder was told to give leadership up
	Targets   []TargetState `json:"targets,omitempty"`
	Alerts    []view.Alert  `json:"alerts,omitempty"`
}

// Intent is the leader info that targets must show.
type Intent struct {
	Sequence   uint64            `json:"sequence"`
	Epoch      uint64            `json:"epoch"`
	Session    string            `json:"session"`
	Candidate  string            `json:"candidate,omitzero"`
	Address    string            `json:"address"`
	Properties map[string]string `json:"properties,omitempty"`
}

// TargetState says how far a target is.
type TargetState struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Error string `json:"error,omitzero"`
}

// GroupRow is what there is to say about a group in a list.
type GroupRow struct {
	Name       string         `json:"name"`
	Version    uint64         `json:"version"`
	Paused     bool           `json:"paused,omitzero"`
	PausedTill time.Time      `json:"pausedTill,omitzero"` // missing: until it is resumed
	Candidates []CandidateRow `json:"candidates"`
	Components []Row          `json:"components"`
	Alerts     []view.Alert   `json:"alerts,omitempty"` // of the group itself
}

// CandidateRow is what there is to say about a candidate in one line.
type CandidateRow struct {
	Group       string   `json:"group"`
	Name        string   `json:"name"`
	Incarnation string   `json:"incarnation,omitzero"`
	Joined      bool     `json:"joined"`
	Health      string   `json:"health"` // pass, fail or unknown
	Priority    int      `json:"priority"`
	Excluded    bool     `json:"excluded,omitzero"`
	Components  []string `json:"components,omitempty"`
	Address     string   `json:"address,omitzero"`
	Leads       []string `json:"leads,omitempty"`    // components whose term it holds
	Yields      []string `json:"yields,omitempty"`   // those of them that it was told to give up
	Stopping    []string `json:"stopping,omitempty"` // components that it led, and has not said that it stopped to

	ExcludedUntil time.Time `json:"excludedUntil,omitzero"` // missing: until it is included
	HeldDown      bool      `json:"heldDown,omitzero"`      // it gave leadership up, and is not chosen
	HeldDownUntil time.Time `json:"heldDownUntil,omitzero"` // missing: until it passes
	Check         string    `json:"check,omitzero"`         // the check that failed most often in a row
	Failures      int       `json:"failures,omitzero"`      // so many times
	Reason        string    `json:"reason,omitzero"`        // what it said last
	LastRun       time.Time `json:"lastRun,omitzero"`       // when a check was reported last; missing: none was
	SilentSince   time.Time `json:"silentSince,omitzero"`   // its agent has not been heard
}

// Groups is a page of groups, ordered by name.
type Groups struct {
	Sequence uint64     `json:"sequence"` // of the view that was read
	Groups   []GroupRow `json:"groups"`
	Next     string     `json:"next,omitzero"`
}

// Group is the whole state of a group.
type Group struct {
	Sequence uint64 `json:"sequence"`
	view.Group
}

// Component is the whole state of a component.
type Component struct {
	Sequence    uint64           `json:"sequence"`
	Group       string           `json:"group"`
	Phase       string           `json:"phase"`
	Ready       string           `json:"ready"` // true, false or unknown
	TargetSpecs []journal.Target `json:"targetSpecs,omitempty"`
	Observed    []string         `json:"observed,omitempty"`    // those of the targets where nothing is kept
	Paused      bool             `json:"paused,omitzero"`       // its group is
	PausedTill  time.Time        `json:"pausedTill,omitzero"`   // missing: until it is resumed
	Candidates  []CandidateRow   `json:"candidates,omitempty"`  // that may lead it, or do
	Chances     []view.Chance    `json:"chances,omitempty"`     // theirs to take it over, the best one first
	GroupAlerts []view.Alert     `json:"groupAlerts,omitempty"` // of its group itself
	view.Component
}

// Leader answers who leads a component.
type Leader struct {
	Group     string  `json:"group"`
	Component string  `json:"component"`
	State     string  `json:"state"`          // confirmed; else why not: vacant, granted, withdrawn, lapsed, other-leader, released, not-ready
	Epoch     uint64  `json:"epoch,omitzero"` // of the term: the fencing token
	Candidate string  `json:"candidate,omitzero"`
	Session   string  `json:"session,omitzero"`
	Ready     string  `json:"ready"`
	Released  bool    `json:"released,omitzero"` // the holder has said that it stopped
	Leader    *Intent `json:"leader,omitzero"`   // what targets must show
}

// Term is one time that a candidate led.
type Term struct {
	Epoch       uint64    `json:"epoch"`
	Candidate   string    `json:"candidate"`
	Session     string    `json:"session"`
	Address     string    `json:"address,omitzero"` // as confirmed last
	Since       time.Time `json:"since"`
	ConfirmedAt time.Time `json:"confirmedAt,omitzero"`
	Ended       time.Time `json:"ended,omitzero"`   // missing while it is open
	EndedBy     uint64    `json:"endedBy,omitzero"` // sequence of the record that closed it
	Reason      string    `json:"reason,omitzero"`  // of the revoke, or superseded
}

// History is the terms of a component, newest first.
type History struct {
	Group     string `json:"group"`
	Component string `json:"component"`
	Terms     []Term `json:"terms"`
	Next      string `json:"next,omitzero"`
}

// Diff compares what targets show with what the view wants them to show.
type Diff struct {
	Sequence uint64    `json:"sequence"` // of the view that was compared
	Rows     []DiffRow `json:"rows"`
	Next     string    `json:"next,omitzero"`
}

// Words of a comparison beside package compare's.
const (
	Unreachable = "unreachable" // the state of a row whose target could not be read
	BuiltIn     = "nats/kv"     // the kind of the built-in bucket
)

// DiffRow is one component at one target.
type DiffRow struct {
	Group     string     `json:"group"`
	Component string     `json:"component"`
	Target    string     `json:"target"` // kv: the built-in bucket
	Kind      string     `json:"kind"`
	Guarded   bool       `json:"guarded,omitzero"`
	State     string     `json:"state"`           // same, differs, observed or unreachable
	Reason    string     `json:"reason,omitzero"` // why it differs
	Error     string     `json:"error,omitzero"`  // why it can't be read
	Should    *Standing  `json:"should,omitzero"` // what must stand there; missing where nothing is kept
	Shows     *Standing  `json:"shows,omitzero"`  // what stands there; missing where that is not known
	Push      *PushState `json:"push,omitzero"`   // how far it is; missing where nothing is pushed, and for the built-in bucket
}

// Standing is what stands in a target for a component.
type Standing struct {
	Sequence     uint64              `json:"sequence,omitzero"`
	Revision     uint64              `json:"revision,omitzero"`
	Leader       *journal.LeaderInfo `json:"leader,omitzero"` // missing: nobody
	Holder       string              `json:"holder,omitzero"` // of the lock on the object
	Participants []string            `json:"participants,omitempty"`
}

// PushState is what the view knows of writing a target.
type PushState struct {
	State      string          `json:"state"`
	Due        bool            `json:"due,omitzero"`
	OutSince   time.Time       `json:"outSince,omitzero"` // not in sync since
	Attempts   int             `json:"attempts,omitzero"` // at the newest intent
	Error      string          `json:"error,omitzero"`    // of the last one
	Permanent  bool            `json:"permanent,omitzero"`
	FailedAt   time.Time       `json:"failedAt,omitzero"`
	RetryAfter policy.Duration `json:"retryAfter,omitzero"`
	Drifts     int             `json:"drifts,omitzero"` // times that it was seen to show something else
}

// Heartbeat renews a candidate's liveness key.
type Heartbeat struct {
	Incarnation string          `json:"incarnation"`
	Revision    uint64          `json:"revision,omitzero"` // that the key must have; 0: there must be none
	Lease       policy.Duration `json:"lease,omitzero"`    // for which the candidate will count on this renewal; 0: it holds none
	Run         uint64          `json:"run,omitzero"`      // the last passing run of its checks; information only
}

// Renewed answers a heartbeat.
type Renewed struct {
	Revision uint64 `json:"revision"` // to renew next
}

// Problem says why a request was refused, as in RFC 9457.
type Problem struct {
	Type   string       `json:"type"` // urn:journald:problem:<code>
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitzero"`
	Errors []FieldError `json:"errors,omitempty"` // what is wrong with the input, all of it
	Events []Ack        `json:"events,omitempty"` // what was stored nevertheless, where waiting for more failed

	// Found is what stands in a liveness key that could not be renewed, where that is a conflict. Missing: there is no key.
	Found *alive.Entry `json:"found,omitzero"`
}

// FieldError says what is wrong with one member of the input.
type FieldError struct {
	Index   *int   `json:"index,omitzero"` // in a batch, from 0
	Field   string `json:"field"`
	Problem string `json:"problem"`
}

// ProblemPrefix begins the type of every problem.
const ProblemPrefix = "urn:journald:problem:"
