package projector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

func (m *memory) Read(_ context.Context, components []string) ([]projector.Observation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	shown := make([]projector.Observation, len(components))
	for i, name := range components {
		shown[i] = projector.Observation{Component: name, Revision: m.revision, Sequence: m.sequence, Entry: m.entries[name].Leader}
	}
	return shown, nil
}

func (m *memory) Watch(ctx context.Context, report func(projector.Observation) error) error {
	m.mu.Lock()
	m.report = report
	m.mu.Unlock()
	if err := report(projector.Observation{Gap: true}); err != nil {
		return err
	}
	for _, o := range m.shown() {
		if err := report(o); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// shown is the full observation that ends a gap.
func (m *memory) shown() (all []projector.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, e := range m.entries {
		all = append(all, projector.Observation{Component: name, Revision: m.revision, Sequence: m.sequence, Entry: e.Leader})
	}
	return all
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

// lines is what a log was told.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
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
	return startLogging(t, l, name, targets, slog.New(slog.DiscardHandler))
}

func startLogging(t *testing.T, l *stream.Log, name string, targets map[string]projector.Target, logger *slog.Logger) *running {
	t.Helper()
	var specs []journal.Target
	for target := range targets {
		specs = append(specs, journal.Target{Name: target, Kind: "memory"})
	}
	p, err := projector.New(projector.Config{
		Instance: name, Log: l, Lease: l.NewLease(500 * time.Millisecond), Logger: logger,
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
	deadline := time.After(limit)
	for !r.Status().Active {
		select {
		case <-r.Changed():
		case <-time.After(10 * time.Millisecond): // it may become so without a record
		case <-deadline:
			require.Fail(t, "never active")
		}
	}
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

func TestATapIsToldEveryRecordBeforeItCanBeRead(t *testing.T) {
	l := openLog(t)
	p := start(t, l, "journald-0", nil)
	p.active(t)
	type told struct {
		sequence uint64
		verdict  view.Verdict
	}
	var all []told
	before := p.Status().Applied
	p.Tap(func(r *journal.Record, result view.Result) { all = append(all, told{r.Sequence, result.Verdict}) })
	sequence := lead(t, l, "rest", "S1", "http://a")
	require.NoError(t, p.Wait(t.Context(), sequence))
	p.Read(func(v *view.View) {
		require.NotEmpty(t, all)
		require.Equal(t, v.Sequence(), all[len(all)-1].sequence)
		require.Equal(t, told{sequence, view.Applied}, all[sequence-all[0].sequence])
		require.LessOrEqual(t, all[0].sequence, before+1)
	})
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

// TestWhatGoesWrongIsLogged has a target refuse, take writes again, be changed by somebody else, and be watched anew.
func TestWhatGoesWrongIsLogged(t *testing.T) {
	l, m := openLog(t), newMemory()
	m.refuse = errors.New("refused")
	var out lines
	p := startLogging(t, l, "journald-0", map[string]projector.Target{"cm": m}, slog.New(slog.NewTextHandler(&out, nil)))
	sequence := lead(t, l, "rest", "S1", "http://a")
	state := func(want string) {
		t.Helper()
		p.until(t, want, func(v *view.View) bool {
			if v.Group("g") == nil || v.Group("g").Components["rest"] == nil {
				return false
			}
			target := v.Group("g").Components["rest"].Targets["cm"]
			return target != nil && target.State == want
		})
	}
	state(view.Failing)
	m.mu.Lock()
	m.refuse = nil
	m.mu.Unlock()
	state(view.InSync)
	m.mu.Lock()
	seen := projector.Observation{Component: "rest", Revision: m.revision + 1, Sequence: m.sequence}
	m.revision++
	report := m.report
	m.mu.Unlock()
	require.NoError(t, report(seen))
	p.until(t, "drift noted", func(v *view.View) bool { return v.Group("g").Components["rest"].Targets["cm"].DriftTotal == 1 })
	require.NoError(t, report(projector.Observation{Gap: true}))
	p.end(t)
	for _, want := range []string{
		fmt.Sprintf(`level=WARN msg="a push failed" group=g target=cm sequence=%d failures=1 error=refused`, sequence),
		fmt.Sprintf(`level=INFO msg="pushes succeed again" group=g target=cm sequence=%d revision=1 failures=`, sequence),
		`level=WARN msg="an anomaly was seen" group=g sequence=`, ` component=rest target=cm revision=2 anomaly=drift detail="cm was seen to show nothing`,
		`level=INFO msg="a watch begins anew, and may have missed something" group=g target=cm untold=0`,
	} {
		require.Equal(t, 1, strings.Count(out.String(), want), "%s\n%s", want, out.String())
	}
}

// TestALookIsAtTheNewestDescription of a group's targets.
func TestALookIsAtTheNewestDescription(t *testing.T) {
	l, m := openLog(t), newMemory()
	p := start(t, l, "journald-0", map[string]projector.Target{"cm": m, "gone": nil})
	sequence := lead(t, l, "rest", "S1", "http://a")
	m.await(t, "rest", "http://a")
	got := p.Look(t.Context(), "g", "cm", []string{"other", "rest"})
	require.Equal(t, []string{"other", "rest"}, []string{got[0].Component, got[1].Component})
	require.Equal(t, sequence, got[1].Sequence)
	require.Equal(t, "http://a", got[1].Entry.Address)
	require.Nil(t, got[0].Entry)
	require.Equal(t, "no target gone", p.Look(t.Context(), "g", "gone", []string{"rest"})[0].Error)
	for _, nowhere := range [][2]string{{"g", "none"}, {"none", "cm"}} {
		require.Contains(t, p.Look(t.Context(), nowhere[0], nowhere[1], []string{"rest"})[0].Error, "no target of this name")
	}
	require.False(t, p.HasBuiltIn())
	require.Contains(t, p.Look(t.Context(), "g", "", []string{"rest"})[0].Error, "no target of this name")
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
