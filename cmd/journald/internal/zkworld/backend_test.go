package zkworld

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/scenario"
)

var single testenv.SharedZooKeeper

func TestMain(m *testing.M) { os.Exit(single.Run(m)) }

const chroot = "/test/scenarios"

func newBackend(t *testing.T) *Backend {
	t.Helper()
	b, err := New([]string{single.Servers(t)[0] + chroot}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

func load(t *testing.T, file string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.LoadFile(file)
	require.NoError(t, err)
	return s
}

// TestScenariosOnZnodes runs the project's scenarios on znodes of a real ZooKeeper, and those files that
// JOURNALD_SCENARIOS names, as `make test` does with what stands beside the checkout. All of them run but those whose
// targets are guarded, and nothing is left of them.
func TestScenariosOnZnodes(t *testing.T) {
	b := newBackend(t)
	files, err := filepath.Glob("../../../../scenarios/*.yaml")
	require.NoError(t, err)
	files = append(files, strings.Fields(os.Getenv("JOURNALD_SCENARIOS"))...)
	ran, incident := 0, 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			s := load(t, file)
			err := scenario.Run(t.Context(), s, scenario.Options{Backend: b})
			if guarded := strings.Contains(string(s.Policy), `"authority":"backend"`); guarded {
				require.ErrorIs(t, err, scenario.ErrInexpressible)
				return
			}
			require.NoError(t, err)
			ran++
			if slices.Contains(s.Source, "FLINK-40114") {
				incident++
			}
		})
	}
	require.GreaterOrEqual(t, ran, max(7, len(files)*9/10))
	require.NotZero(t, incident, "the incident that journald is made for")
	left, _, err := b.tree.conn.Children(chroot)
	require.NoError(t, err)
	require.Empty(t, left)
}

// careless is a backend whose writer does what FLINK-40114 did: it writes without looking at the sequence and without
// a condition, and takes an entry that it does not expect down before it writes its own.
type careless struct {
	*Backend
	erase bool
}

func (c careless) Open(ctx context.Context, group string, spec journal.Target) (scenario.Object, error) {
	opened, err := c.Backend.Open(ctx, group, spec)
	if err != nil {
		return nil, err
	}
	return &carelessObject{opened.(*object), c.erase}, nil
}

type carelessObject struct {
	*object
	erase bool
}

func (c *carelessObject) Target() (projector.Target, error) {
	target, err := c.object.Target()
	return &carelessTarget{target, c}, err
}

type carelessTarget struct {
	projector.Target
	object *carelessObject
}

func (t *carelessTarget) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	o := t.object
	err := scenario.Gate(ctx, func(ctx context.Context) error {
		c := scenario.Change{Component: doc.Component, Entry: doc.Entries[doc.Component].Leader, Sequence: doc.Sequence}
		shown, err := o.Show(ctx, c.Component)
		if is := shown.Entries[c.Component]; o.erase && is != nil && c.Entry != nil && is.Session != c.Entry.Session {
			c.Entry = nil
		}
		return errors.Join(err, o.Write(ctx, c))
	})
	shown, showErr := o.Show(ctx, doc.Component)
	return projector.Receipt{Revision: shown.Revision, Wrote: true}, errors.Join(err, showErr)
}

func TestACarelessWriterBreaksAnInvariant(t *testing.T) {
	b := newBackend(t)
	s := load(t, "../../../../scenarios/a-frozen-instance-changes-nothing.yaml")
	require.ErrorContains(t, scenario.Run(t.Context(), s, scenario.Options{Backend: careless{Backend: b}}), "invariant I2")
	s = load(t, "../../../../scenarios/a-stale-event-erases-nothing.yaml")
	require.ErrorContains(t, scenario.Run(t.Context(), s, scenario.Options{Backend: careless{b, true}}), "invariant I1")
}

// TestFaultsAreWhatAClientSees has the adapter's own judgement of every fault stand in the journal.
func TestFaultsAreWhatAClientSees(t *testing.T) {
	b := newBackend(t)
	for fault, want := range map[string]struct{ outcome, error string }{
		"unavailable":            {journal.Failed, "could not connect"},
		"throttled":              {journal.Unknown, "unknown error: -127"},
		"conflict":               {journal.Failed, "changed meanwhile"},
		"forbidden":              {journal.Failed, "refused"},
		"not-found":              {journal.Failed, "refused"},
		"invalid":                {journal.Failed, "refused"},
		"timeout":                {journal.Unknown, "connection closed"},
		"timeout, applied: true": {journal.Unknown, "connection closed"},
	} {
		s, err := scenario.Parse([]byte("name: fault\nsteps:\n" +
			"  - fail:    {target: cm, error: " + fault + "}\n" +
			"  - grant:   {component: restserver, candidate: jm-1, session: S1}\n" +
			"  - confirm: {component: restserver, session: S1, address: \"http://jm-1:8081\"}\n"))
		require.NoError(t, err)
		var written bytes.Buffer
		require.NoError(t, scenario.Run(t.Context(), s, scenario.Options{Backend: b, Journal: &written}), fault)
		_, push, ok := strings.Cut(written.String(), "push ")
		require.True(t, ok, fault)
		push, _, _ = strings.Cut(push, "\n")
		require.Contains(t, push, `"outcome":"`+want.outcome+`"`, fault)
		require.Contains(t, push, want.error, fault)
		require.Equal(t, want.error == "refused", strings.Contains(push, `"permanent":true`), push)
	}
}

func TestWhatAZnodeCantExpress(t *testing.T) {
	b := newBackend(t)
	require.NoError(t, b.Check(journal.Target{Name: "cm"}, []string{"rest", "job:1%"}))
	require.ErrorContains(t, b.Check(journal.Target{Name: "cm", Guarded: true}, nil), "target cm: guarded")
	require.ErrorContains(t, b.Check(journal.Target{Name: "cm"}, []string{"jobs/1"}), "can't have a /")
}

func TestServersThatCantBeReached(t *testing.T) {
	_, err := New([]string{"127.0.0.1:1"}, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, ErrUnreachable)
	_, err = New([]string{"nowhere:none"}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "port")
	require.NotErrorIs(t, err, ErrUnreachable)
}
