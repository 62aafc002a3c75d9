package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/health"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// ledger is a journal in which everything is applied and nothing is decided: tests say where the candidate stands.
type ledger struct {
	mu       sync.Mutex
	events   []journal.Event
	standing client.Standing
	renewals uint64
	away     atomic.Bool
	changed  chan struct{} // closed and replaced when anything has changed
}

func newLedger(election string) *ledger {
	p := policy.Default()
	p.Election = election
	p.Lease = policy.Lease{Duration: 3 * minute, RenewEvery: policy.Duration(5 * time.Millisecond), ReleaseWithin: minute}
	p.Health.HoldDown = 1
	return &ledger{standing: client.Standing{Candidate: "c", Policy: p}, changed: make(chan struct{})}
}

func (l *ledger) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// await returns when something holds, and fails the test when it does not within a minute.
func (l *ledger) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for {
		l.mu.Lock()
		ok, changed := holds(), l.changed
		l.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			require.Fail(t, "it did not come to pass: "+what, l.events)
		}
	}
}

// awaitEvent returns the first event of a kind that the journal was told of after those that were seen before.
func awaitEvent[D journal.Data](t *testing.T, l *ledger) (data D) {
	t.Helper()
	l.await(t, "an event of kind "+data.Kind(), func() bool {
		for i, e := range l.events {
			if d, ok := e.Data.(D); ok {
				data = d
				l.events = slices.Delete(l.events, i, i+1)
				return true
			}
		}
		return false
	})
	return data
}

// stand says where the candidate stands from here on.
func (l *ledger) stand(terms ...client.Term) {
	l.change(func() { l.standing.Sequence += 100; l.standing.Terms = terms })
}

func (l *ledger) Group() string { return "g" }
func (l *ledger) Close() error  { return nil }

func (l *ledger) Append(ctx context.Context, events ...journal.Event) (acks []client.Ack, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.away.Load() {
		return nil, errors.New("no answer")
	}
	l.change(func() {
		for _, e := range events {
			l.standing.Sequence++
			if join, ok := e.Data.(*journal.Join); ok {
				l.standing.Incarnation, l.standing.Joined = join.Incarnation, true
			}
			l.events = append(l.events, e)
			acks = append(acks, client.Ack{Sequence: l.standing.Sequence, Verdict: view.Applied})
		}
	})
	return acks, nil
}

func (l *ledger) Renew(context.Context, alive.Key, alive.Heartbeat, uint64) (newer uint64, err error) {
	l.change(func() { l.renewals++; newer = l.renewals })
	return newer, nil
}

func (l *ledger) Follow(ctx context.Context, _ string, tell func(client.Standing) error) error {
	for {
		l.mu.Lock()
		standing, changed := l.standing, l.changed
		standing.Terms = slices.Clone(standing.Terms)
		l.mu.Unlock()
		if err := tell(standing); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// service is the process beside an agent: a web server that notes what it is asked for.
type service struct {
	*httptest.Server
	ledger *ledger

	mu     sync.Mutex
	asked  []Notice
	faults map[string]int // how often a hook fails still
}

func newService(t *testing.T, l *ledger) *service {
	s := &service{ledger: l, faults: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n Notice
		if err := json.UnmarshalRead(r.Body, &n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, n)
		if s.faults[n.Hook]--; s.faults[n.Hook] >= 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
		}
		s.mu.Unlock()
		l.change(func() {})
	}))
	t.Cleanup(s.Close)
	return s
}

// await returns the newest request when there are so many for a hook.
func (s *service) await(t *testing.T, hook string, count int) (last Notice) {
	t.Helper()
	s.ledger.await(t, "a request for "+hook, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, a := range s.asked {
			if a.Hook == hook {
				n, last = n+1, a
			}
		}
		return n >= count
	})
	return last
}

// hooks are the names of those that were asked for, in order.
func (s *service) hooks() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.asked {
		names = append(names, n.Hook)
	}
	return names
}

// running is an agent beside a service.
type running struct {
	*ledger
	*service
	stop func() error
}

func start(t *testing.T, election string, change func(*Settled, *service)) *running {
	t.Helper()
	l := newLedger(election)
	r := &running{ledger: l, service: newService(t, l)}
	hook := Hook{HTTP: Request{URL: r.URL, Method: "POST"}, Timeout: minute}
	c := &Settled{Config: Default()}
	c.Group, c.Candidate, c.Components, c.Address, c.Election = "g", "c", []string{"web"}, "http://c", election
	c.Hooks = Hooks{OnYield: hook, OnFit: hook, OnGranted: hook, OnRevoked: hook}
	if change != nil {
		change(c, r.service)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c, l, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	r.stop = sync.OnceValue(func() error { cancel(errors.New("told to end")); return <-ended })
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// grant says that the candidate leads.
func (r *running) grant(t *testing.T) {
	t.Helper()
	join := awaitEvent[*journal.Join](t, r.ledger)
	r.stand(client.Term{Component: "web", Session: "S1", Epoch: 7, Incarnation: join.Incarnation})
}

// yield says that it is to give that up.
func (r *running) yield() {
	r.stand(client.Term{
		Component: "web", Session: "S1", Epoch: 7, Incarnation: r.standing.Incarnation, Yield: &client.Yield{Sequence: 9, Reason: "its disk is full", To: "d"},
	})
}

func TestTheProcessLeadsWhileTheTermLasts(t *testing.T) {
	r := start(t, policy.Managed, nil)
	r.grant(t)
	granted := r.service.await(t, "onGranted", 1)
	require.Equal(t, Notice{Hook: "onGranted", Group: "g", Candidate: "c", Component: "web", Session: "S1", Epoch: 7}, granted)
	require.Equal(t, []string{"onRevoked", "onGranted"}, r.hooks(), "what an earlier agent left is stopped first")
	require.Equal(t, "http://c", awaitEvent[*journal.Confirm](t, r.ledger).Address)
	require.Equal(t, &journal.Ready{Session: "S1", Ready: true}, awaitEvent[*journal.Ready](t, r.ledger))

	r.yield()
	require.Equal(t, &journal.Release{Session: "S1", Reason: "yielded"}, awaitEvent[*journal.Release](t, r.ledger))
	require.Equal(t, []string{"onRevoked", "onGranted", "onYield", "onRevoked"}, r.hooks())
	require.Equal(t, "its disk is full", r.service.await(t, "onYield", 1).Reason)
	require.Equal(t, "told to yield to d: its disk is full", r.service.await(t, "onRevoked", 2).Reason)
	r.stand()
	require.NoError(t, r.stop())
	require.Equal(t, "shutdown", awaitEvent[*journal.Leave](t, r.ledger).Reason)
}

// The end of the agent is the end of the leading: it is stopped first.
func TestTheAgentEnds(t *testing.T) {
	r := start(t, policy.Managed, nil)
	r.grant(t)
	r.service.await(t, "onGranted", 1)
	require.NoError(t, r.stop())
	require.Equal(t, []string{"onRevoked", "onGranted", "onRevoked"}, r.hooks())
	require.Equal(t, "shutdown", awaitEvent[*journal.Leave](t, r.ledger).Reason)
}

// A process that can't be made to lead gives the term up, and the journal is told why.
func TestTheProcessCantLead(t *testing.T) {
	r := start(t, policy.Managed, func(_ *Settled, s *service) { s.faults["onGranted"] = startTries })
	r.grant(t)
	ready := awaitEvent[*journal.Ready](t, r.ledger)
	require.False(t, ready.Ready)
	require.Contains(t, ready.Reason, "hook onGranted: "+r.URL+" answers 503 Service Unavailable: busy")
	require.Contains(t, awaitEvent[*journal.Release](t, r.ledger).Reason, "failed: hook onGranted: ")
	require.Equal(t, []string{"onRevoked", "onGranted", "onGranted", "onGranted", "onRevoked"}, r.hooks())
}

// Nothing is released before the process has stopped, however long that takes.
func TestTheProcessIsSlowToStop(t *testing.T) {
	r := start(t, policy.Managed, nil)
	r.grant(t)
	r.service.await(t, "onGranted", 1)
	r.mu(func() { r.faults["onRevoked"] = 3 })
	r.yield()
	awaitEvent[*journal.Release](t, r.ledger)
	require.Equal(t, []string{"onRevoked", "onGranted", "onYield", "onRevoked", "onRevoked", "onRevoked", "onRevoked"}, r.hooks())
}

func (r *running) mu(f func()) {
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	f()
}

// An agent that can't stop what an earlier one left does not take part, and ends when it is told to.
func TestWhatAnEarlierAgentLeftCantBeStopped(t *testing.T) {
	r := start(t, policy.Managed, func(_ *Settled, s *service) { s.faults["onRevoked"] = 1 << 30 })
	r.service.await(t, "onRevoked", 2)
	require.NoError(t, r.stop())
	require.Empty(t, r.events)
}

// A journal that is away holds the end up for half of the time that it may take, and is no error.
func TestTheAgentEndsWithoutTheJournal(t *testing.T) {
	r := start(t, policy.Managed, func(c *Settled, _ *service) { c.StopWithin = policy.Duration(200 * time.Millisecond) })
	r.grant(t)
	r.service.await(t, "onGranted", 1)
	r.away.Store(true)
	require.NoError(t, r.stop())
	require.Equal(t, []string{"onRevoked", "onGranted", "onRevoked"}, r.hooks())
}

// A process that does not stop is an error, in the end.
func TestTheProcessDoesNotStop(t *testing.T) {
	r := start(t, policy.Managed, func(c *Settled, _ *service) { c.StopWithin = policy.Duration(50 * time.Millisecond) })
	r.grant(t)
	r.service.await(t, "onGranted", 1)
	r.mu(func() { r.faults["onRevoked"] = 1 << 30 })
	require.ErrorContains(t, r.stop(), "leader work has not stopped within 50ms")
	r.change(func() {
		for _, e := range r.events {
			require.NotEqual(t, "release", e.Data.Kind())
		}
	})
}

// The process has an election of its own: it is made to give up, and told when it may contend again.
func TestBesideAnElection(t *testing.T) {
	r := start(t, policy.External, func(_ *Settled, s *service) { s.faults["onYield"], s.faults["onFit"] = 2, 1 })
	r.grant(t)
	r.yield()
	want := Notice{Hook: "onYield", Group: "g", Candidate: "c", Component: "web", Session: "S1", Epoch: 7, Reason: "its disk is full", To: "d"}
	require.Equal(t, want, r.service.await(t, "onYield", 3))
	require.Equal(t, &journal.Revoke{Session: "S1", Candidate: "c", Reason: "yielded"}, awaitEvent[*journal.Revoke](t, r.ledger))
	r.stand()
	require.Equal(t, Notice{Hook: "onFit", Group: "g", Candidate: "c", Component: "web"}, r.service.await(t, "onFit", 2))
	require.NoError(t, r.stop())
	require.Equal(t, []string{"onYield", "onYield", "onYield", "onFit", "onFit"}, r.hooks())
}

// A disk that hangs holds the renewals up; one that says what is wrong with it does not.
func TestTheWriteBeforeEachRenewal(t *testing.T) {
	hang, writes := make(chan struct{}), 0
	r := start(t, policy.External, func(c *Settled, _ *service) {
		c.probe = func(context.Context) error {
			if writes++; writes > 3 {
				<-hang
			}
			return errors.New("no space left")
		}
		c.checks = []health.Check{{Name: "a", Period: 10 * time.Millisecond, Deadline: 10 * time.Millisecond, Probe: func(context.Context) error {
			return errors.New("no space left")
		}}}
	})
	r.ledger.await(t, "three renewals", func() bool { return r.renewals == 3 })
	for range 20 {
		awaitEvent[*journal.Health](t, r.ledger) // checks go on
	}
	require.EqualValues(t, 3, r.renewals)
	close(hang)
	r.ledger.await(t, "renewals", func() bool { return r.renewals > 5 })
}
