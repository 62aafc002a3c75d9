package journal

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Event is one statement about leadership, before or after it is stored.
type Event struct {
	ID        string    // unique for its source; 1 to 128 characters
	Source    string    // who says so, a URI reference: candidate/jm-1, observer/k8s, operator/alice, projector/journald-0
	Group     string    // "_" for takeover and checkpoint, which concern all groups
	Component string    // empty for what concerns the whole group
	Time      time.Time // the publisher's clock, UTC; never used for order
	Data      Data      // what is said; its type is the event's kind; not nil in a valid event

	// Extensions are the members of the envelope that v1 does not know, as a JSON object, or nil.
	Extensions jsontext.Value
}

// Data is the content of an event: one of the types of this package, by value of its kind, as a pointer.
type Data interface {
	// Kind is the word for the type in subjects, in the event type and in every user interface.
	Kind() string

	validate(c *checker)
	scope() scope
}

// scope says what an event of a kind is about.
type scope int

const (
	componentScope scope = iota
	groupScope
	eitherScope
	allScope
)

// LeaderInfo is what clients need to reach a leader.
type LeaderInfo struct {
	Session    string            `json:"session"`
	Candidate  string            `json:"candidate,omitzero"`
	Address    string            `json:"address"`
	Properties map[string]string `json:"properties,omitempty"`
}

// Lock names the elector's own object and its revision at the grant. Revisions of one kind of lock rise.
type Lock struct {
	Kind     string `json:"kind"`
	Revision uint64 `json:"revision"`
}

// Target describes one place where a group's leaders are shown: one object of a backend, or one for each component
// where Object or Path contains {component}.
type Target struct {
	Name       string   `json:"name"`                 // unique in its group
	Kind       string   `json:"kind"`                 // k8s/configmap, k8s/lease, zk, …
	Layout     string   `json:"layout,omitzero"`      // flink, json, latch; empty where the kind has only one
	Namespace  string   `json:"namespace,omitzero"`   // Kubernetes
	Object     string   `json:"object,omitzero"`      // Kubernetes: the object's name
	Path       string   `json:"path,omitzero"`        // ZooKeeper
	Components []string `json:"components,omitempty"` // those that it shows; empty: every one of the group
	Guarded    bool     `json:"guarded,omitzero"`     // a system's own object, which is only repaired
	Observe    bool     `json:"observe,omitzero"`     // never written
}

// Decision is what every record of the projector carries.
type Decision struct {
	Projector uint64   `json:"projector"`       // epoch of the instance that wrote it: the sequence of its takeover
	Basis     uint64   `json:"basis"`           // the group's version that it was decided on
	Cause     []uint64 `json:"cause,omitempty"` // sequences of the records that led to it
}

// Order is what every operator's event carries.
type Order struct {
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
}

// Shows says whether the target shows a component.
func (t *Target) Shows(component string) bool {
	return len(t.Components) == 0 || slices.Contains(t.Components, component)
}
