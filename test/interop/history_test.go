package interop_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// state is what a component shows. Its zero value says that nobody leads.
type state struct{ address, session string }

func (s state) String() string {
	if s == (state{}) {
		return "nobody"
	}
	address := s.address
	if len(address) > 80 {
		address = fmt.Sprintf("%s… (%d bytes)", address[:40], len(address))
	}
	return strings.TrimSpace(fmt.Sprintf("%q %s", address, s.session))
}

func (l line) state() state {
	if l.Address == nil {
		return state{}
	}
	return state{*l.Address, l.Session}
}

func show(said []line) string {
	var all []string
	for _, l := range said {
		all = append(all, l.Of+": "+l.state().String())
	}
	return strings.Join(all, "; ")
}

// follow says which of the states a reader is at who read this, and that it went wrong where it did: a reader may miss
// some, but it reads them in their order.
func follow(states, read []state) (at int, err error) {
	for i, s := range read {
		ahead := slices.Index(states[at:], s)
		switch {
		case ahead >= 0:
			at += ahead
		case slices.Contains(states, s):
			return at, fmt.Errorf("reading %d went back to %s, when %s had been read", i+1, s, states[at])
		default:
			return at, fmt.Errorf("reading %d, after %s, is %s: that was never written", i+1, states[at], s)
		}
	}
	return at, nil
}

func TestFollow(t *testing.T) {
	nobody, a, b, c := state{}, state{"a", "1"}, state{"b", "2"}, state{"c", "3"}
	for name, test := range map[string]struct {
		written, read []state
		at            int
		wrong         string
	}{
		"everything":             {[]state{nobody, a, b, c}, []state{a, b, c}, 3, ""},
		"some are missed":        {[]state{nobody, a, b, c}, []state{a, c}, 3, ""},
		"some are still to come": {[]state{nobody, a, b, c}, []state{a, b}, 2, ""},
		"each is read twice":     {[]state{nobody, a, b}, []state{nobody, nobody, a, a, b, b}, 2, ""},
		"a withdrawal":           {[]state{nobody, a, nobody, b}, []state{a, nobody, b}, 3, ""},
		"nothing":                {[]state{nobody, a}, nil, 0, ""},
		"back":                   {[]state{nobody, a, b, c}, []state{a, c, b, c}, 3, `went back to "b" 2`},
		"a gap":                  {[]state{nobody, a, b}, []state{a, nobody, b}, 1, "went back to nobody"},
		"half of this, of that":  {[]state{nobody, a, b}, []state{a, {"b", "1"}, b}, 1, `is "b" 1: that was never written`},
		"a leader without an id": {[]state{nobody, a, b}, []state{{"", "1"}, b}, 0, "that was never written"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := follow(test.written, test.read)
			require.Equal(t, test.at, at)
			if test.wrong == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.wrong)
			}
		})
	}
}

// writer shows leaders in a target, and keeps what each component showed.
type writer struct {
	t       *testing.T
	target  projector.Target
	entries map[string]projector.Entry
	shown   map[string][]state
	head    uint64 // of the journal that is told of
	drops   func(state) state
}

const group = "interop"

// newWriter is one whose components have shown nothing so far. What drops takes away is what the layout can't hold.
func newWriter(t *testing.T, target projector.Target, drops func(state) state, components ...string) *writer {
	w := &writer{t: t, target: target, entries: map[string]projector.Entry{}, shown: map[string][]state{}, drops: drops}
	for _, c := range components {
		w.shown[c] = []state{{}}
	}
	return w
}

// leads has an address lead a component, in a new session.
func (w *writer) leads(component, address string) {
	w.t.Helper()
	session := uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%d %s", w.head, address)).String()
	w.show(component, &journal.LeaderInfo{Session: session, Candidate: "jobmanager-1", Address: address})
}

// nobodyLeads withdraws whoever leads a component.
func (w *writer) nobodyLeads(component string) {
	w.t.Helper()
	w.show(component, nil)
}

func (w *writer) show(component string, leader *journal.LeaderInfo) {
	w.t.Helper()
	w.head++
	e := projector.Entry{Sequence: w.head, Epoch: w.head, Phase: "confirmed", Leader: leader}
	if leader == nil {
		e.Phase = "vacant"
	}
	w.entries[component] = e
	doc := &projector.Document{Group: group, Sequence: w.head, Projector: 1, Entries: w.entries}
	if w.target.PerComponent() {
		doc.Component, doc.Entries = component, map[string]projector.Entry{component: e}
	}
	receipt, err := w.target.Push(w.t.Context(), doc)
	require.NoError(w.t, err)
	require.Empty(w.t, receipt.Rejected)
	require.Equal(w.t, []string{component}, receipt.Changed)
	var s state
	if leader != nil {
		s = w.drops(state{leader.Address, leader.Session})
	}
	w.shown[component] = append(w.shown[component], s)
}

// awaitRead waits until a reader has read what every component shows, and checks all that it read before.
func (w *writer) awaitRead(r *reader) {
	w.t.Helper()
	r.await("it has read what is shown now", w.wasRead)
}

// wasRead says whether what every component shows was read, and fails where anything else was read than what was shown,
// in the order in which it was. Of what nothing was read, nobody leads.
func (w *writer) wasRead(said []line) bool {
	w.t.Helper()
	all := true
	for _, component := range slices.Sorted(maps.Keys(w.shown)) {
		var read []state
		for _, l := range said {
			if l.Of == component {
				read = append(read, l.state())
			}
		}
		states := w.shown[component]
		at, err := follow(states, read)
		require.NoError(w.t, err, component)
		all = all && states[at] == states[len(states)-1]
	}
	return all
}
