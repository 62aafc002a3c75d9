package scenario

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// TestScenariosOfTheProject runs the files that users find in the repository.
func TestScenariosOfTheProject(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			s, err := LoadFile(file)
			require.NoError(t, err)
			require.NoError(t, Run(t.Context(), s, Options{}))
		})
	}
}

func TestARunGivesTheSameJournalEveryTime(t *testing.T) {
	s, err := LoadFile("../scenarios/a-confirmation-that-fails-is-tried-again.yaml")
	require.NoError(t, err)
	var first, second bytes.Buffer
	require.NoError(t, Run(t.Context(), s, Options{Journal: &first}))
	require.NoError(t, Run(t.Context(), s, Options{Journal: &second}))
	require.Equal(t, first.String(), second.String())
	require.Contains(t, first.String(), "confirm    applied")
	require.Contains(t, first.String(), `"outcome":"failed"`)
}

const begin = `
name: test
steps:
  - grant:   {component: rest, candidate: jm-1, session: S1}
  - confirm: {component: rest, session: S1, address: "http://jm-1"}
`

func run(t *testing.T, text string, o Options) error {
	t.Helper()
	s, err := Parse([]byte(text))
	require.NoError(t, err)
	return Run(t.Context(), s, o)
}

func TestWhatIsNotAsExpectedIsNamed(t *testing.T) {
	for step, want := range map[string][]string{
		"expect: {verdict: stale}":                            {"step 3: expect", "verdict", "expected stale", "got      applied"},
		"expect: {view: {rest: {phase: vacant}}}":             {"view: rest: phase", "expected vacant", "got      confirmed"},
		"expect: {view: {rest: {intent: none}}}":              {"view: rest: intent", "expected none"},
		"expect: {view: {rest: {intent: {address: x}}}}":      {"view: rest: intent.address", "expected x", "got      http://jm-1"},
		"expect: {view: {rest: {yield: {to: a}}}}":            {"view: rest: yield", "got      none"},
		"expect: {view: {rest: {anomalies: [drift]}}}":        {"expected [drift]", "got      none"},
		"expect: {target: {cm: {rest: absent}}}":              {"target: cm: rest", "expected absent", "S1"},
		"expect: {target: {cm: {rest: {session: S2}}}}":       {"rest.session", "expected S2", "got      S1"},
		"expect: {target: {cm: {other: {session: S2}}}}":      {"target: cm: other", "got      absent"},
		"expect: {alerts: [NoLeader]}":                        {"alerts", "expected [NoLeader]", "got      none"},
		"expect: {without: [push]}":                           {"without push", "1 writes"},
		"expect: {decisions: [{alert: {name: NoLeader}}]}":    {"decisions", "alert{name: NoLeader}"},
		"advance: 1m\n  - expect: {decisions: [{alert: {}}]}": {"decisions"},
		"expect: {verdict: void, alerts: [X]}":                {"expected void", "expected [X]"},
	} {
		err := run(t, begin+"  - "+step+"\n", Options{})
		require.ErrorIs(t, err, ErrFailed, step)
		for _, text := range want {
			require.ErrorContains(t, err, text, step)
		}
	}
}

func TestStepsThatMakeNoSense(t *testing.T) {
	for step, want := range map[string]string{
		"grant: {component: rest, candidat: jm-1, session: S1}": "candidat",
		"grant: {component: rest}":                              "candidate",
		"confirm: 7":                                            "not a map",
		"advance: soon":                                         "not a duration",
		"hold: cn":                                              `did you mean "cm"?`,
		"fail: {target: cm, error: unavailble}":                 `did you mean "unavailable"?`,
		"fail: {target: cm, error: conflict, applied: true}":    "only a timeout",
		"fail: {target: xx, error: conflict}":                   "no target xx",
		"write: {target: xx, component: rest, entry: null}":     "no target xx",
		"write: {target: cm, component: rest, entri: null}":     "entri",
		"watch: {component: rest, target: xx, entry: null}":     "no target",
		"redeliver: 9":                                          "from 1 to 2",
		"projector: sleep":                                      "none of",
		"projector: crash\n  - projector: crash":                "no instance acts",
		"expect: {verdickt: stale}":                             "verdickt",
		"expect: {view: {rest: {fase: vacant}}}":                `did you mean "phase"?`,
		"expect: {target: {cmm: {rest: absent}}}":               `did you mean "cm"?`,
		"expect: {without: [pushes]}":                           "none of",
	} {
		err := run(t, begin+"  - "+step+"\n", Options{})
		require.ErrorContains(t, err, want, step)
		require.NotErrorIs(t, err, ErrFailed, step)
	}
}

func TestFilesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"{":                           "not YAML",
		"name: a":                     "steps",
		"name: a\nname: b\nsteps: []": "not YAML",
		"name: a\nstep: []":           "step",
		"name: a\nsteps: [{grant: {}, revoke: {}}]":                  "has the verbs grant, revoke",
		"name: a\nsteps: [{grnt: {}}]":                               `did you mean "grant"?`,
		"name: a\npolicy: {elections: managed}\nsteps: [{hold: cm}]": "elections",
		"name: a\npolicy: {election: chosen}\nsteps: [{hold: cm}]":   "election",
		"name: a\ntargets: {cm: {componentz: []}}\nsteps: [{}]":      "componentz",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	file := filepath.Join(t.TempDir(), "other.yaml")
	require.NoError(t, os.WriteFile(file, []byte(begin), 0o600))
	_, err := LoadFile(file)
	require.ErrorContains(t, err, "called as its file: other")
	_, err = LoadFile(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// unfenced is a backend whose writer does what FLINK-40114 did: it writes without looking at the sequence and without
// a condition, and takes an entry that it does not expect down before it writes its own.
type unfenced struct {
	simulated
	erase bool
}

func (u unfenced) Open(context.Context, string, journal.Target) (Object, error) {
	return &careless{store: &store{clock: 10}, erase: u.erase}, nil
}

type careless struct {
	*store
	erase bool
}

func (c *careless) Target() (projector.Target, error) {
	return &carelessTarget{simTarget{c.store}, c.erase}, nil
}

type carelessTarget struct {
	simTarget
	erase bool
}

func (t *carelessTarget) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	err := Gate(ctx, func(context.Context) error {
		t.store.touch()
		for name, e := range doc.Entries {
			if is := t.store.state.Entries[name]; t.erase && is != nil && e.Leader != nil && is.Session != e.Leader.Session {
				t.store.set(name, nil)
				continue
			}
			t.store.set(name, e.Leader)
		}
		t.store.state.Sequence = doc.Sequence
		return nil
	})
	return projector.Receipt{Revision: t.store.state.Revision, Wrote: true}, err
}

func TestAnUnfencedWriterBreaksAnInvariant(t *testing.T) {
	s, err := LoadFile("../scenarios/a-frozen-instance-changes-nothing.yaml")
	require.NoError(t, err)
	require.ErrorContains(t, Run(t.Context(), s, Options{Backend: unfenced{}}), "invariant I2")

	s, err = LoadFile("../scenarios/a-stale-event-erases-nothing.yaml")
	require.NoError(t, err)
	require.ErrorContains(t, Run(t.Context(), s, Options{Backend: unfenced{erase: true}}), "invariant I1")
}

// deaf is a backend whose writer claims to have written.
type idle struct{ simulated }

func (idle) Open(context.Context, string, journal.Target) (Object, error) {
	return &lazy{&store{clock: 10}}, nil
}

type lazy struct{ *store }

func (l *lazy) Target() (projector.Target, error) { return &lazyTarget{simTarget{l.store}}, nil }

type lazyTarget struct{ simTarget }

func (t *lazyTarget) Push(context.Context, *projector.Document) (projector.Receipt, error) {
	return projector.Receipt{Revision: 1, Wrote: true}, nil
}

func TestATargetThatNeverShowsItsIntentBreaksAnInvariant(t *testing.T) {
	require.ErrorContains(t, run(t, begin, Options{Backend: idle{}}), "invariant I9")
}
