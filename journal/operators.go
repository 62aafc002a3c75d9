package journal

import (
	"time"

	"github.com/leadership-journal/journald/policy"
)

// Transfer orders leadership to be handed to a candidate, or to the best one.
type Transfer struct {
	To    string `json:"to,omitzero"`
	Force bool   `json:"force,omitzero"` // also to an unfit one
	Order
	extra
}

// Exclude keeps a candidate from being chosen.
type Exclude struct {
	Candidate string    `json:"candidate"`
	Until     time.Time `json:"until,omitzero"`
	Order
	extra
}

// Include ends an exclusion.
type Include struct {
	Candidate string `json:"candidate"`
	Order
	*Decision // where the exclusion's time had passed
	extra
}

// Pause stops yields and elections of a group; pushes go on.
type Pause struct {
	Until time.Time `json:"until,omitzero"`
	Order
	extra
}

// Resume ends a pause.
type Resume struct {
	Order
	*Decision
	extra
}

// Policy sets the rules and targets of a group from here on.
type Policy struct {
	Policy  policy.Policy `json:"policy"`
	Targets *[]Target     `json:"targets,omitzero"` // nil: unchanged
	Order
	*Decision // where the projector's configuration says so
	extra
	inner policyExtras
}
