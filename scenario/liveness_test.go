package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

const managedGroup = `
name: test
policy: {election: managed, lease: {duration: 15s}}
steps:
  - join:    {candidate: m-1, components: [rest]}
  - join:    {candidate: m-2, components: [rest]}
  - confirm: {component: rest, session: S1, address: "http://m-1"}
`

func TestAgentsKeepTheirKeys(t *testing.T) {
	for steps, want := range map[string]string{
		"advance: 1h\n  - expect: {view: {rest: {candidate: m-1, session: S1}}}":                                       "",
		"silent: m-1\n  - advance: 14s\n  - expect: {view: {rest: {candidate: m-1, session: S1}}}":                     "",
		"silent: m-1\n  - advance: 15s\n  - expect: {view: {rest: {candidate: m-2}}}":                                  "",
		"silent: m-1\n  - advance: 14s\n  - alive: m-1\n  - advance: 1m\n  - expect: {view: {rest: {candidate: m-1}}}": "",
		"alive: m-1\n  - advance: 1m\n  - expect: {view: {rest: {candidate: m-1}}}":                                    "",
		"silent: m-9": "no candidate m-9 has joined",
		"alive: m-3":  `did you mean "m-1"?`,
	} {
		err := run(t, managedGroup+"  - "+steps+"\n", Options{})
		if want == "" {
			require.NoError(t, err, steps)
		} else {
			require.ErrorContains(t, err, want, steps)
		}
	}
}

// TestASessionsName stands for what was open when an event first used it, in every place where a session is named.
func TestASessionsName(t *testing.T) {
	require.NoError(t, run(t, managedGroup+`
  - release: {component: rest, session: S1, reason: test}
  - expect:
      view:      {rest: {candidate: m-2, intent: {session: S1}}}
      target:    {cm: {rest: {session: S1}}}
      decisions: [{grant: {candidate: m-1, session: S1}}, {revoke: {session: S1}}, {grant: {candidate: m-2}}]
  - confirm: {component: rest, session: S1, candidate: m-1, address: "http://late"}
  - expect:  {verdict: stale}
  - confirm: {component: rest, session: S2, address: "http://m-2"}
  - expect:
      verdict: applied
      view:    {rest: {session: S2, intent: {session: S2, candidate: m-2}}}
      target:  {cm: {rest: {session: S2}}}
`, Options{}))
	require.ErrorContains(t, run(t, managedGroup+"  - expect: {view: {rest: {session: S2}}}\n", Options{}), "got      S1")
	require.NoError(t, run(t, begin+"  - expect: {view: {rest: {session: S1}}}\n", Options{}), "an elector's own sessions are called as they are")
}

// TestElectionsThatBreakAnInvariant has a projector that is none do what ours must not.
func TestElectionsThatBreakAnInvariant(t *testing.T) {
	for want, do := range map[string]func(w *world) error{
		"invariant I5": func(w *world) error {
			session := w.component("rest").Term.Session
			d := journal.Decision{Projector: 1, Basis: w.view.Group(group).Version}
			e := w.event("projector/other", "rest", &journal.Revoke{Session: session, Reason: "expired", Decision: &d})
			_, err := w.store(e)
			w.put("leadership.g._.raw", []byte("something else"))
			return err
		},
		"invariant I11": func(w *world) error {
			w.alive.claims[claim{"rest", "another"}] = process{"m-2", "1"}
			return nil
		},
	} {
		s, err := Parse([]byte(managedGroup))
		require.NoError(t, err)
		w, err := newWorld(t.Context(), s, Options{Backend: simulated{}})
		require.NoError(t, err)
		for _, step := range s.steps {
			require.NoError(t, w.run(step))
		}
		require.NoError(t, w.check())
		require.NoError(t, do(w))
		require.ErrorContains(t, w.check(), want)
		require.NoError(t, w.close())
	}
}

// TestBeliefEnds tells when a holder does not believe any more that it leads.
func TestBeliefEnds(t *testing.T) {
	for steps, leads := range map[string]bool{
		"advance: 1h":                                                                  true,
		"silent: m-1\n  - advance: 14s":                                                true,
		"silent: m-1\n  - advance: 15s":                                                false,
		"release: {component: rest, session: S1, reason: test}":                        false,
		"revoke: {component: rest, session: S1, reason: shutdown}":                     false,
		"leave: {candidate: m-1}":                                                      false,
		"pause: {}\n  - silent: m-1\n  - advance: 20s\n  - alive: m-1":                 false,
		"pause: {}\n  - silent: m-1\n  - advance: 10s\n  - alive: m-1":                 true,
		"join: {candidate: m-1, incarnation: 2, components: [rest]}":                   true,
		"join: {candidate: m-1, incarnation: 2, components: [rest]}\n  - advance: 15s": false,
	} {
		s, err := Parse([]byte(managedGroup + "  - " + steps + "\n"))
		require.NoError(t, err)
		w, err := newWorld(t.Context(), s, Options{Backend: simulated{}})
		require.NoError(t, err)
		for _, step := range s.steps {
			require.NoError(t, w.run(step), steps)
		}
		by, claims := w.alive.claims[claim{"rest", w.sessions.made[claim{"rest", "S1"}]}]
		require.Equal(t, leads, claims && w.leased(by), steps)
		require.NoError(t, w.close())
	}
}
