package scenario

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// sessions are the names that a file gives to the sessions that the projector made, and back.
type sessions struct {
	made  map[claim]string // by component and name
	named map[claim]string // by component and session
}

func newSessions() *sessions { return &sessions{made: map[claim]string{}, named: map[claim]string{}} }

func (w *world) managed() bool {
	g := w.view.Group(group)
	return g != nil && g.Policy.Election == policy.Managed
}

// standFor puts the session in the place of its name: the one that is open when an event first uses it.
func (w *world) standFor(component string, f map[string]jsontext.Value) {
	name, ok := f["session"]
	if !ok || !w.managed() {
		return
	}
	use := claim{component, text(name)}
	if w.sessions.made[use] == "" {
		t := w.component(component).Term
		if t == nil {
			return
		}
		w.sessions.made[use] = t.Session
		w.sessions.named[claim{component, t.Session}] = use.session
	}
	f["session"] = quote(w.sessions.made[use])
}

// name is what the file calls a session.
func (s *sessions) name(component, session string) string {
	if name := s.named[claim{component, session}]; name != "" {
		return name
	}
	return session
}

// checkElection holds I5: no decision leaves a managed component without a term while somebody may lead it. It notes
// who may believe that it leads, for I11.
func (w *world) checkElection(r *journal.Record, result view.Result) {
	if pending := w.ended; pending != "" {
		w.ended = ""
		if _, ok := r.Event.Data.(*journal.Grant); !ok || r.Event.Component != pending || result.Verdict != view.Applied {
			w.broke("I5: record %d: the projector ended the term of %s, and no grant came with it", r.Sequence-1, pending)
		}
	}
	if d, ok := r.Event.Data.(*journal.Leave); ok {
		w.alive.stops(process{d.Candidate, d.Incarnation}) // which is as good as a release
	}
	c := result.Component
	if c == nil || !w.managed() {
		return
	}
	switch d := r.Event.Data.(type) {
	case *journal.Revoke:
		switch {
		case d.Decision == nil: // its holder's own word
			delete(w.alive.claims, claim{c.Name, d.Session})
		case result.Verdict == view.Applied && w.anybody(c.Name):
			w.ended = c.Name
		}
	case *journal.Confirm:
		if t := c.Term; t != nil && !t.Released && result.Verdict == view.Applied {
			w.alive.claims[claim{c.Name, t.Session}] = process{t.Candidate, t.Incarnation}
		}
	case *journal.Release:
		delete(w.alive.claims, claim{c.Name, d.Session})
	}
}

// anybody says whether a candidate has joined for a component.
func (w *world) anybody(component string) bool {
	for _, k := range w.view.Group(group).Candidates {
		if k.Joined != 0 && slices.Contains(k.Components, component) {
			return true
		}
	}
	return false
}

// checkLeases holds I11: no two holders of a component may believe at one time that they lead it.
func (w *world) checkLeases() {
	leads := map[string]string{}
	for _, c := range slices.SortedFunc(maps.Keys(w.alive.claims), compareClaims) {
		by := w.alive.claims[c]
		if !w.leased(by) {
			continue
		}
		if other := leads[c.component]; other != "" {
			w.broke("I11: at %s both session %s and %s/%s of session %s may believe that they lead %s",
				w.now.Format("15:04:05.000"), other, by.candidate, by.incarnation, c.session, c.component)
		}
		leads[c.component] = c.session
	}
}

func compareClaims(a, b claim) int {
	return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.session, b.session))
}
