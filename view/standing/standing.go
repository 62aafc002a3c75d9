// Package standing says where one candidate stands, as the journal has it: whether it takes part, and which terms it
// holds. It is what a candidate is told, by a journald that folds the journal for it or by itself.
package standing

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// Candidate is where a candidate stands in its group.
type Candidate struct {
	Sequence    uint64        `json:"sequence"`             // newest record that it is known to be true at
	Candidate   string        `json:"candidate"`            //
	Incarnation string        `json:"incarnation,omitzero"` // the one that joined last
	Joined      bool          `json:"joined"`               // that one may lead
	Health      string        `json:"health"`               // pass, fail or unknown, as the journal has it
	Policy      policy.Policy `json:"policy"`               // of the group
	Terms       []Term        `json:"terms,omitempty"`      // the open ones that the candidate holds, by component
}

// Term is an open term.
type Term struct {
	Component   string    `json:"component"`
	Epoch       uint64    `json:"epoch"` // the fencing token
	Session     string    `json:"session"`
	Incarnation string    `json:"incarnation,omitzero"` // that had joined at the grant
	Since       time.Time `json:"since"`                // by the journal's clock
	Confirmed   bool      `json:"confirmed,omitzero"`
	Ready       string    `json:"ready"`             // true, false or unknown
	Attempt     uint64    `json:"attempt,omitzero"`  // the last one of its holder's confirmations
	Released    bool      `json:"released,omitzero"` //
	Yield       *Yield    `json:"yield,omitzero"`    // an order to give it up
}

// Yield is an order to give a term up.
type Yield struct {
	Sequence uint64    `json:"sequence"`
	Reason   string    `json:"reason"`
	To       string    `json:"to,omitzero"` // who is to follow, as things are
	Since    time.Time `json:"since"`
	Ordered  bool      `json:"ordered,omitzero"` // by an operator; else for the holder's health
}

// unknown is the word for what the journal does not say.
const unknown = "unknown"

// Of is where a candidate stands, a copy. Of a group or candidate that the journal never spoke of it says that it has not
// joined. It costs what the candidate's own terms cost, however large the group is.
func Of(v *view.View, group, candidate string) Candidate {
	s := Candidate{Sequence: v.Sequence(), Candidate: candidate, Health: unknown}
	g := v.Group(group)
	if g == nil {
		s.Policy = policy.Default()
		return s
	}
	s.Policy = g.Policy
	if k := g.Candidates[candidate]; k != nil {
		s.Incarnation, s.Joined, s.Health = k.Incarnation, k.Joined != 0, cmp.Or(k.Rank, unknown)
	}
	for _, c := range g.LedBy(candidate) {
		s.Terms = append(s.Terms, termOf(c))
	}
	slices.SortFunc(s.Terms, func(a, b Term) int { return strings.Compare(a.Component, b.Component) })
	return s
}

func termOf(c *view.Component) Term {
	t := c.Term
	term := Term{
		Component: c.Name, Epoch: t.Epoch, Session: t.Session, Incarnation: t.Incarnation, Since: t.Since,
		Confirmed: t.Confirmed, Ready: cmp.Or(t.Ready, unknown), Released: t.Released,
	}
	for _, a := range t.Attempts {
		if a.Candidate == t.Candidate {
			term.Attempt = a.Attempt
		}
	}
	if y := t.Yield; y != nil {
		term.Yield = &Yield{Sequence: y.Sequence, Reason: y.Reason, To: y.To, Since: y.Since, Ordered: y.Ordered}
	}
	return term
}

// Same says whether two standings tell a candidate the same, at whatever records.
func Same(a, b Candidate) bool {
	a.Sequence, b.Sequence = 0, 0
	return reflect.DeepEqual(a, b)
}
