package view

import (
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// Group is the state of one group.
type Group struct {
	Name       string                `json:"name"`
	Version    uint64                `json:"version"` // counts the records that changed what decisions read
	Policy     policy.Policy         `json:"policy"`
	Targets    []journal.Target      `json:"targets,omitempty"`
	Configured uint64                `json:"configured,omitzero"` // sequence of the newest policy record
	FromFile   *FromFile             `json:"fromFile,omitzero"`   // what a projector's configuration said last
	Paused     bool                  `json:"paused,omitzero"`
	PausedTill time.Time             `json:"pausedTill,omitzero"`
	Candidates map[string]*Candidate `json:"candidates"`
	Components map[string]*Component `json:"components"`
	Alerts     []Alert               `json:"alerts,omitempty"`
	Anomalies  []Anomaly             `json:"anomalies,omitempty"`
	Recent     []string              `json:"recent,omitempty"` // the newest message ids of what is told apart by id

	roster roster
	agenda groupAgenda
}

// FromFile is what a projector's configuration said about a group. It is kept beside the policy, which an operator may
// have changed since.
type FromFile struct {
	Policy  policy.Policy    `json:"policy"`
	Targets []journal.Target `json:"targets,omitempty"`
	Basis   uint64           `json:"basis"` // the group's version that it was written on: an older one comes too late
}

// Component is the state of one component.
type Component struct {
	Name     string             `json:"name"`
	Epoch    uint64             `json:"epoch,omitzero"`  // of the newest term
	Term     *Term              `json:"term,omitzero"`   // nil: none is open
	Intent   *Intent            `json:"intent,omitzero"` // nil: nobody ever confirmed
	Shown    uint64             `json:"shown,omitzero"`  // newest sequence that changed epoch, phase or leader info
	Sessions []Session          `json:"sessions,omitempty"`
	Locks    []journal.Lock     `json:"locks,omitempty"` // the highest revision seen of each kind
	Targets  map[string]*Target `json:"targets,omitempty"`

	LeaderlessSince time.Time `json:"leaderlessSince,omitzero"` // zero while somebody leads, or nobody is there to
	Terms           []moment  `json:"terms,omitempty"`          // when the newest ones began
	Handover        *Handover `json:"handover,omitzero"`        // nil: leadership was never handed over but by the book
	Alerts          []Alert   `json:"alerts,omitempty"`
	Anomalies       []Anomaly `json:"anomalies,omitempty"`

	joined []*Candidate // those that may lead it; derived
	timer  *timer       // when time alone may change what is decided, or nil; derived
	ledBy  *led         // whoever holds its open term, or nil; derived
	led    int32        // its place there; derived
	queued bool         // on the agenda; derived
}

// Handover is what is known of how leadership passes from one holder to the next.
type Handover struct {
	Yields   []moment   `json:"yields,omitempty"` // when the newest ones for health were told
	Stopping []Stopping `json:"stopping,omitempty"`
	Overlaps []Overlap  `json:"overlaps,omitempty"`
	Transfer *Transfer  `json:"transfer,omitzero"` // ordered and not yet decided
	ForcedTo string     `json:"forcedTo,omitzero"` // whose next term a forced transfer asked for
	InVain   []Tried    `json:"inVain,omitempty"`  // managed: who was granted it and never confirmed, since somebody last did
}

// Term is open from a grant to a revoke or a newer grant.
type Term struct {
	Epoch       uint64    `json:"epoch"` // sequence of the grant: the fencing token
	Candidate   string    `json:"candidate"`
	Incarnation string    `json:"incarnation,omitzero"` // as joined at the grant
	Session     string    `json:"session"`
	Since       time.Time `json:"since"`
	Ready       string    `json:"ready,omitzero"` // true, false or empty for unknown: the holder's own word
	ReadyReason string    `json:"readyReason,omitzero"`
	Attempts    []Attempt `json:"attempts,omitempty"`
	Yield       *Yield    `json:"yield,omitzero"`
	Held        uint64    `json:"held,omitzero"` // sequence of the hold of a blocked spell
	Confirmed   bool      `json:"confirmed,omitzero"`
	Released    bool      `json:"released,omitzero"`
	ReleasedBy  uint64    `json:"releasedBy,omitzero"` // sequence of the release, or of the leave that is as good
	Unfit       bool      `json:"unfit,omitzero"`      // the holder's last run had failed at the grant, and a fit candidate existed
	Forced      bool      `json:"forced,omitzero"`     // by a transfer; no health yield until the holder has passed once
	Sole        bool      `json:"sole,omitzero"`       // managed: granted to a failing holder, since nobody better was there
}

// Tried is a candidate that was granted a component and did not confirm within the time allowed.
type Tried struct {
	Candidate   string `json:"candidate"`
	Incarnation string `json:"incarnation,omitzero"`
}

// Attempt is the last confirmation attempt seen of one candidate within a session.
type Attempt struct {
	Candidate string `json:"candidate"`
	Attempt   uint64 `json:"attempt"`
}

// Yield is an open yield: the holder was told to give leadership up.
type Yield struct {
	Sequence uint64    `json:"sequence"`
	Reason   string    `json:"reason"`
	To       string    `json:"to,omitzero"`
	Since    time.Time `json:"since"`
	Ordered  bool      `json:"ordered,omitzero"` // by an operator, not for health
	Forced   bool      `json:"forced,omitzero"`
}

// Intent is the leader info that targets must show. It outlives its term.
type Intent struct {
	Sequence uint64              `json:"sequence"` // of the confirm, or of what cleared it
	Epoch    uint64              `json:"epoch"`
	Leader   *journal.LeaderInfo `json:"leader,omitzero"`   // nil: withdrawn
	Before   *journal.LeaderInfo `json:"before,omitzero"`   // of the intent that this one replaced
	Replaced uint64              `json:"replaced,omitzero"` // with this sequence
}

// Session is one that has ended, or was refused.
type Session struct {
	ID        string    `json:"id"`
	Candidate string    `json:"candidate,omitzero"`
	Refused   bool      `json:"refused,omitzero"`
	Attempts  []Attempt `json:"attempts,omitempty"`
}

// Stopping is a former holder whose stop is not confirmed.
type Stopping struct {
	Session   string    `json:"session"`
	Candidate string    `json:"candidate"`
	Sequence  uint64    `json:"sequence"` // that closed its term; a newer join of the candidate ends the wait
	Closed    time.Time `json:"closed"`
}

// Overlap is a term that was superseded by another holder's, and whose end was never reported.
type Overlap struct {
	Session string    `json:"session"`
	Since   time.Time `json:"since"`
}

// Transfer is an operator's order.
type Transfer struct {
	Sequence uint64 `json:"sequence"`
	To       string `json:"to,omitzero"`
	Force    bool   `json:"force,omitzero"`
	Reason   string `json:"reason"`
}

// Alert is a condition that lasts.
type Alert struct {
	Name     string    `json:"name"`
	Reason   string    `json:"reason"`
	Sequence uint64    `json:"sequence"`
	Since    time.Time `json:"since"`
}

// Anomaly is something that should not have happened.
type Anomaly struct {
	Name      string   `json:"name"`
	Detail    string   `json:"detail"`
	Sequences []uint64 `json:"sequences"`
}

// The states of a target.
const (
	InSync  = "in-sync"
	Pending = "pending" // the newest intent is still to be written
	Failing = "failing" // the last write failed
	Drifted = "drifted" // it was seen to show something else
	Unclear = "unknown" // the outcome of a write is not known, or observations may have been missed
)

// Target is what is known of one target for one component.
type Target struct {
	State        string              `json:"state,omitzero"`
	Due          bool                `json:"due,omitzero"`      // the intent is to be written, or what was written read back
	Pushed       uint64              `json:"pushed,omitzero"`   // the newest sequence acknowledged there
	Shows        *journal.LeaderInfo `json:"shows,omitzero"`    // with the leader info that it had
	Revision     uint64              `json:"revision,omitzero"` // the newest one pushed or seen
	Fence        uint64              `json:"fence,omitzero"`    // the sequence that it had
	Entry        *journal.LeaderInfo `json:"entry,omitzero"`    // and the entry
	Holder       string              `json:"holder,omitzero"`
	Participants []string            `json:"participants,omitempty"`
	Attempts     int                 `json:"attempts,omitzero"` // of the newest intent
	Error        string              `json:"error,omitzero"`
	Permanent    bool                `json:"permanent,omitzero"`
	FailedAt     time.Time           `json:"failedAt,omitzero"` // when the attempt with this error was
	RetryAfter   policy.Duration     `json:"retryAfter,omitzero"`
	OutSince     time.Time           `json:"outSince,omitzero"`  // not in sync since
	SyncSince    time.Time           `json:"syncSince,omitzero"` // in sync since
	ErasedAt     time.Time           `json:"erasedAt,omitzero"`  // guarded: by the system itself
	Drifts       []moment            `json:"drifts,omitempty"`   // the newest three since PublishedDrift was last cleared
	DriftTotal   int                 `json:"driftTotal,omitzero"`
}

// Overtaken says whether something else than what was last written there is known to stand in the target.
func (t *Target) Overtaken() bool {
	return t.Revision != 0 && (t.Fence < t.Pushed || !sameLeader(t.Entry, t.Shows))
}

// Phase is vacant, granted or confirmed.
func (c *Component) Phase() string {
	switch {
	case c.Term == nil:
		return "vacant"
	case c.Term.Confirmed:
		return "confirmed"
	}
	return "granted"
}

// Leader is the leader info that targets must show, nil where there is none.
func (c *Component) Leader() *journal.LeaderInfo {
	if c.Intent == nil {
		return nil
	}
	return c.Intent.Leader
}

// handover is what is known of handing leadership over, for reading.
func (c *Component) handover() Handover {
	if c.Handover == nil {
		return Handover{}
	}
	return *c.Handover
}

// handing is the same for writing.
func (c *Component) handing() *Handover {
	if c.Handover == nil {
		c.Handover = &Handover{}
	}
	return c.Handover
}

// Shown says whether an entry tells clients this intent.
func (i *Intent) Shown(entry *journal.LeaderInfo) bool { return sameLeader(entry, i.Leader) }

// Outdated says whether an entry tells clients what was known to stand in a target before this intent.
func (i *Intent) Outdated(entry *journal.LeaderInfo, t *Target) bool {
	return entry != nil && !i.Shown(entry) && (sameLeader(entry, i.Before) || t != nil && sameLeader(entry, t.Shows))
}

// Keeps says whether a target is kept as the journal has it. One that is only observed is not, nor is a system's own
// object while the journal is the authority: they are watched.
func (g *Group) Keeps(spec *journal.Target) bool {
	return !spec.Observe && (!spec.Guarded || g.Policy.Authority == policy.Backend)
}

// TargetSpec is the description of a target, nil where the group has none of that name.
func (g *Group) TargetSpec(name string) *journal.Target {
	for i := range g.Targets {
		if g.Targets[i].Name == name {
			return &g.Targets[i]
		}
	}
	return nil
}

func (g *Group) component(name string) *Component {
	c := g.Components[name]
	if c == nil {
		c = &Component{Name: name}
		g.Components[name] = c
	}
	return c
}

// target is the state of a target that shows the component, nil where it does not.
func (g *Group) target(c *Component, name string) (*journal.Target, *Target) {
	spec := g.TargetSpec(name)
	if spec == nil {
		return nil, nil
	}
	return spec, c.target(spec)
}

// target is the state of a target, nil where it does not show the component.
func (c *Component) target(spec *journal.Target) *Target {
	if t := c.Targets[spec.Name]; t != nil {
		return t
	}
	if !spec.Shows(c.Name) {
		return nil
	}
	if c.Targets == nil {
		c.Targets = map[string]*Target{}
	}
	t := &Target{}
	c.Targets[spec.Name] = t
	return t
}

// blank says whether there is nothing to be remembered of a component.
func (c *Component) blank() bool {
	return c.Epoch == 0 && c.Intent == nil && len(c.Sessions)+len(c.Locks)+len(c.Targets)+len(c.Alerts)+len(c.Anomalies) == 0
}

// anomaly notes something, for the record that shows it.
func (f *fold) anomaly(list *[]Anomaly, name, detail string, sequences ...uint64) {
	*list = newest(append(*list, Anomaly{Name: name, Detail: detail, Sequences: append(sequences, f.r.Sequence)}), maxAnomalies)
}

// sameLeader says whether two entries tell a client the same. A candidate that one of them does not name is no
// difference, since some layouts have no place for it.
func sameLeader(a, b *journal.LeaderInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Session != b.Session || a.Address != b.Address {
		return false
	}
	return a.Candidate == b.Candidate || a.Candidate == "" || b.Candidate == ""
}
