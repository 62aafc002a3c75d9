package projector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

// limit is how long anything may take before a test gives up.
const limit = 20 * time.Second

// memory is an object in memory, for what concerns the loop and not the backend.
type memory struct {
	mu       sync.Mutex
	sequence uint64
	revision uint64
	entries  map[string]projector.Entry
	changed  chan struct{}
	report   func(projector.Observation) error
	refuse   error
}

func newMemory() *memory {
	return &memory{entries: map[string]projector.Entry{}, changed: make(chan struct{}, 1)}
}

func (m *memory) PerComponent() bool { return false }

func (m *memory) Push(_ context.Context, doc *projector.Document) (projector.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return projector.Receipt{}, m.refuse
	}
	if m.sequence > doc.Sequence {
		return projector.Receipt{}, projector.ErrSuperseded
	}
	m.sequence = doc.Sequence
	m.revision++
	for name, e := range doc.Entries {
		m.entries[name] = e
	}
	select {
	case m.changed <- struct{}{}:
	default:
	}
	return projector.Receipt{Revision: m.revision, Wrote: true}, nil
}

func (m *memory) Watch(ctx context.Context, report func(projector.Observation) error) error {
	m.mu.Lock()
	m.report = report
	m.mu.Unlock()
	if err := report(projector.Observation{Gap: true}); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// await waits until the object shows an address for a component.
func (m *memory) await(t *testing.T, component, address string) {
	t.Helper()
	deadline := time.After(limit)
	for {
		m.mu.Lock()
		e := m.entries[component]
		m.mu.Unlock()
		if e.Leader != nil && e.Leader.Address == address {
			return
		}
		select {
		case <-m.changed:
		case <-deadline:
			require.Failf(t, "never shown", "%s at %s; it shows %+v", component, address, e.Leader)
		}
	}
}

func openLog(t *testing.T) *stream.Log {
	t.Helper()
	l, err := stream.Open(t.Context(), stream.Options{
		Embedded: &stream.Embedded{Dir: t.TempDir(), MaxStore: 256 << 20}, Instance: "test",
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
		defer cancel()
		require.NoError(t, l.Close(ctx))
	})
	return l
}

// running is a projector and the end of its Run.
type running struct {
	*projector.Projector
	stop context.CancelFunc
	done chan error
	once sync.Once
}

func start(t *testing.T, l *stream.Log, name string, targets map[string]projector.Target) *running {
	t.Helper()
	var specs []journal.Target
	for target := range targets {
		specs = append(specs, journal.Target{Name: target, Kind: "memory"})
	}
	p, err := projector.New(projector.Config{
		Instance: name, Log: l, Lease: l.NewLease(500 * time.Millisecond), Logger: slog.New(slog.DiscardHandler),
		Settings: projector.Settings{Defaults: policy.Default(), Groups: map[string]projector.Group{
			"g": {Policy: policy.Default(), Targets: specs},
		}},
		Connect: func(_ string, spec journal.Target) (projector.Target, error) {
			if target := targets[spec.Name]; target != nil {
				return target, nil
			}
			return nil, fmt.Errorf("no target %s", spec.Name)
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Projector: p, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- p.Run(ctx) }()
	t.Cleanup(func() { r.end(t) })
	return r
}

func (r *running) end(t *testing.T) {
	r.once.Do(func() {
		r.stop()
		select {
		case err := <-r.done:
			require.NoError(t, err)
		case <-time.After(limit):
			require.Fail(t, "Run does not return")
		}
	})
}

// until waits until what the view shows satisfies a condition.
func (r *running) until(t *testing.T, what string, ok func(*view.View) bool) {
	t.Helper()
	deadline := time.After(limit)
	for {
		changed, is := r.Changed(), false
		r.Read(func(v *view.View) { is = ok(v) })
		if is {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			require.Fail(t, "never: "+what)
		}
	}
}

func (r *running) active(t *testing.T) {
	t.Helper()
	r.until(t, "active", func(*view.View) bool { return r.Status().Active })
}

func event(id, component string, data journal.Data) journal.Event {
	return journal.Event{ID: id, Source: "candidate/jm-1", Group: "g", Component: component, Time: time.Now().UTC(), Data: data}
}

func lead(t *testing.T, l journal.Log, component, session, address string) uint64 {
	t.Helper()
	acks, err := l.Append(t.Context(),
		event("grant-"+session, component, &journal.Grant{Candidate: "jm-1", Session: session}),
		event("confirm-"+session, component, &journal.Confirm{Session: session, Candidate: "jm-1", Address: address, Attempt: 1}))
	require.NoError(t, err)
	return acks[1].Sequence
}

func TestAConfirmIsShown(t *testing.T) {
	l, m := openLog(t), newMemory()
	p := start(t, l, "journald-0", map[string]projector.Target{"cm": m})
	sequence := lead(t, l, "rest", "S1", "http://a")
	m.await(t, "rest", "http://a")
	require.NoError(t, p.Wait(t.Context(), sequence))
	verdict, _, ok := p.Verdict(sequence)
	require.True(t, ok)
	require.Equal(t, view.Applied, verdict)
	p.until(t, "in sync", func(v *view.View) bool {
		target := v.Group("g").Components["rest"].Targets["cm"]
		return target != nil && target.State == view.InSync && target.Pushed == sequence
	})
	p.end(t)
}

func TestWhatWasConfirmedWhileNobodyActedIsShownLater(t *testing.T) {
	l, m := openLog(t), newMemory()
	lead(t, l, "rest", "S1", "http://a")
	start(t, l, "journald-0", map[string]projector.Target{"cm": m})
	m.await(t, "rest", "http://a")
}

func TestAnObservationOfTheTargetIsStoredAndRepaired(t *testing.T) {
	l, m := openLog(t), newMemory()
	p := start(t, l, "journald-0", map[string]projector.Target{"cm": m})
	lead(t, l, "rest", "S1", "http://a")
	m.await(t, "rest", "http://a")
	p.until(t, "in sync", func(v *view.View) bool {
		c := v.Group("g").Components["rest"]
		return c.Targets["cm"] != nil && c.Targets["cm"].State == view.InSync
	})
	m.mu.Lock()
	m.entries["rest"] = projector.Entry{}
	m.revision++
	seen := projector.Observation{Component: "rest", Revision: m.revision, Sequence: m.sequence}
	report := m.report
	m.mu.Unlock()
	require.NoError(t, report(seen))
	m.await(t, "rest", "http://a")
	p.until(t, "drift noted", func(v *view.View) bool {
		a := v.Group("g").Components["rest"].Anomalies
		return len(a) == 1 && a[0].Name == "drift"
	})
}

func TestATargetThatCannotBeMadeFailsAloneAndForGood(t *testing.T) {
	l, m := openLog(t), newMemory()
	p := start(t, l, "journald-0", map[string]projector.Target{"cm": m, "gone": nil})
	lead(t, l, "rest", "S1", "http://a")
	m.await(t, "rest", "http://a")
	p.until(t, "TargetFailing", func(v *view.View) bool {
		c := v.Group("g").Components["rest"]
		return len(c.Alerts) == 1 && c.Alerts[0].Name == "TargetFailing" && c.Targets["gone"].Permanent
	})
}

func TestTheSecondInstanceFollowsAtOnceWhenTheFirstEnds(t *testing.T) {
	l, m := openLog(t), newMemory()
	first := start(t, l, "journald-0", map[string]projector.Target{"cm": m})
	first.active(t)
	second := start(t, l, "journald-1", map[string]projector.Target{"cm": m})
	second.until(t, "following", func(v *view.View) bool { return v.Sequence() > 0 })
	require.False(t, second.Status().Active)
	first.end(t)
	second.active(t)
	require.Greater(t, second.Status().Epoch, first.Status().Epoch)
	lead(t, l, "rest", "S1", "http://a")
	m.await(t, "rest", "http://a")
}

func TestAnInstanceThatSeesANewerTakeoverActsNoMore(t *testing.T) {
	l, m := openLog(t), newMemory()
	p := start(t, l, "journald-0", map[string]projector.Target{"cm": m})
	p.active(t)
	old := p.Status().Epoch
	_, err := l.Append(t.Context(), journal.Event{
		ID: "other", Source: "projector/other", Group: "_", Time: time.Now().UTC(), Data: &journal.Takeover{Instance: "other"},
	})
	require.NoError(t, err)
	// the other one never shows up again: ours gives the lease back, gets it again, and takes over anew
	p.until(t, "a newer epoch of ours", func(v *view.View) bool {
		epoch, instance := v.Projector()
		return epoch > old+1 && instance == "journald-0"
	})
	p.active(t)
}

func TestSettingsCanBeChangedWhileItRuns(t *testing.T) {
	l, m := openLog(t), newMemory()
	p := start(t, l, "journald-0", map[string]projector.Target{"cm": m})
	lead(t, l, "rest", "S1", "http://a")
	m.await(t, "rest", "http://a")
	require.NoError(t, p.Configure(t.Context(), projector.Settings{Defaults: policy.Default(), Groups: map[string]projector.Group{
		"g": {Policy: policy.Default()},
	}}))
	p.until(t, "no target", func(v *view.View) bool { return len(v.Group("g").Targets) == 0 })
}

// broken is a log that can be followed to nowhere.
type broken struct{ journal.Log }

func (broken) Last(context.Context) (uint64, error) { return 1, nil }

func (broken) Follow(context.Context, uint64, func([]journal.Record) error) error {
	return fmt.Errorf("%w: 7 is missing", journal.ErrHole)
}

func TestAHoleInTheJournalStopsTheProjector(t *testing.T) {
	l := openLog(t)
	p, err := projector.New(projector.Config{
		Instance: "journald-0", Log: broken{l}, Lease: l.NewLease(time.Second), Logger: slog.New(slog.DiscardHandler),
		Connect: func(string, journal.Target) (projector.Target, error) { return nil, errors.New("none") },
	})
	require.NoError(t, err)
	require.ErrorIs(t, p.Run(t.Context()), journal.ErrHole)
}

func TestAProjectorNeedsItsParts(t *testing.T) {
	_, err := projector.New(projector.Config{})
	require.ErrorContains(t, err, "needs a name")
	_, err = projector.New(projector.Config{Instance: "a"})
	require.ErrorContains(t, err, "are needed")
}
