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

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

// lease is the groups' in these tests.
const lease = 1200 * time.Millisecond

func rules(election string) policy.Policy {
	p := policy.Default()
	p.Election, p.Health.StaleAfter = election, policy.Duration(lease)
	p.Lease = policy.Lease{Duration: policy.Duration(lease), RenewEvery: policy.Duration(lease / 6), ReleaseWithin: policy.Duration(lease)}
	return p
}

// ward is a journal with candidates that live and die.
type ward struct {
	t        *testing.T
	log      *stream.Log
	bucket   *alive.Bucket
	election string
}

func newWard(t *testing.T, election string) *ward {
	t.Helper()
	l := openLog(t)
	b, err := alive.Open(t.Context(), l.JetStream(), alive.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return &ward{t: t, log: l, bucket: b, election: election}
}

// run starts a projector that listens to the bucket, or to what is put around it.
func (w *ward) run(name string, bucket projector.Alive) *running {
	w.t.Helper()
	p, err := projector.New(projector.Config{
		Instance: name, Log: w.log, Lease: w.log.NewLease(500 * time.Millisecond), Alive: bucket,
		Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
		Settings: projector.Settings{Groups: map[string]projector.Group{
			"g": {Policy: rules(w.election)},
		}},
		Connect: func(string, journal.Target) (projector.Target, error) { return nil, errors.New("there are no targets") },
	})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	r := &running{Projector: p, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- p.Run(ctx) }()
	w.t.Cleanup(func() { r.end(w.t) })
	r.active(w.t)
	r.until(w.t, "the group has its policy", func(v *view.View) bool { return v.Group("g") != nil && v.Group("g").Configured != 0 })
	return r
}

func (w *ward) say(component string, data journal.Data) uint64 {
	w.t.Helper()
	acks, err := w.log.Append(w.t.Context(), event(fmt.Sprintf("%s-%d", data.Kind(), time.Now().UnixNano()), component, data))
	require.NoError(w.t, err)
	return acks[0].Sequence
}

// records are those that are stored from a sequence on.
func (w *ward) records(from uint64) []journal.Record {
	w.t.Helper()
	all, err := w.log.Read(w.t.Context(), from, 1000)
	require.NoError(w.t, err)
	return all
}

func (w *ward) kinds(from uint64) (all []string) {
	w.t.Helper()
	for _, r := range w.records(from) {
		all = append(all, r.Event.Data.Kind())
	}
	return all
}

// keeper renews a candidate's key until it dies.
type keeper struct {
	key    alive.Key
	stop   context.CancelFunc
	ended  sync.WaitGroup
	mu     sync.Mutex
	sent   time.Time // of the last renewal that was stored
	renews int
}

// lives joins a candidate and keeps its key, making it anew where it is gone.
func (w *ward) lives(name string) *keeper {
	w.t.Helper()
	w.say("", &journal.Join{Candidate: name, Incarnation: "1", Components: []string{"rest"}})
	ctx, cancel := context.WithCancel(w.t.Context())
	k := &keeper{key: alive.Key{Group: "g", Candidate: name}, stop: cancel}
	first, err := w.bucket.Renew(ctx, k.key, k.beat(), 0)
	require.NoError(w.t, err)
	k.sent = time.Now()
	k.ended.Go(func() { k.keep(ctx, w.bucket, first) })
	w.t.Cleanup(k.die)
	return k
}

func (k *keeper) beat() alive.Heartbeat {
	return alive.Heartbeat{Incarnation: "1", Lease: policy.Duration(lease)}
}

func (k *keeper) keep(ctx context.Context, b *alive.Bucket, revision uint64) {
	every := time.NewTicker(lease / 6)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		sent := time.Now()
		newer, err := b.Renew(ctx, k.key, k.beat(), revision)
		if c, ok := errors.AsType[*alive.Conflict](err); ok && c.Found == nil {
			newer, err = b.Renew(ctx, k.key, k.beat(), 0)
		}
		if err == nil {
			revision = newer
			k.mu.Lock()
			k.sent = sent
			k.renews++
			k.mu.Unlock()
		}
	}
}

func (k *keeper) die() {
	k.stop()
	k.ended.Wait()
}

// renewed is when it renewed its key last, and how often it has.
func (k *keeper) renewed() (time.Time, int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent, k.renews
}

func (r *running) leads(t *testing.T, name string) {
	t.Helper()
	r.until(t, name+" leads", func(v *view.View) bool {
		g := v.Group("g")
		if g == nil || g.Components["rest"] == nil || g.Components["rest"].Term == nil {
			return false
		}
		return g.Components["rest"].Term.Candidate == name
	})
}

// renewals waits until a candidate has renewed its key so many times more.
func (k *keeper) renewals(t *testing.T, more int) {
	t.Helper()
	_, before := k.renewed()
	require.Eventually(t, func() bool {
		_, now := k.renewed()
		return now >= before+more
	}, limit, 5*time.Millisecond)
}

func TestALeaderThatDiesIsReplaced(t *testing.T) {
	w := newWard(t, policy.Managed)
	r := w.run("p1", w.bucket)
	k1, k2 := w.lives("k1"), w.lives("k2")
	r.leads(t, "k1")
	before, err := w.log.Last(t.Context())
	require.NoError(t, err)
	k1.renewals(t, 9)
	last, err := w.log.Last(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, last, "heartbeats leave no records")

	k1.die()
	r.leads(t, "k2")
	sent, _ := k1.renewed()
	require.GreaterOrEqual(t, time.Since(sent), lease)
	require.Less(t, time.Since(sent), lease+2*time.Second)
	require.Equal(t, []string{"revoke", "grant"}, w.kinds(before+1))
	require.Equal(t, "expired", w.records(before + 1)[0].Event.Data.(*journal.Revoke).Reason)
	entry, err := w.bucket.Get(t.Context(), k1.key)
	require.NoError(t, err)
	require.NotZero(t, entry.Until)
	require.Equal(t, policy.Duration(lease), entry.Lease)

	k2.renewals(t, 9)
	r.leads(t, "k2")
}

// racer has the candidate renew its key before each tombstone that is wanted, as long as it lives.
type racer struct {
	*alive.Bucket
	renew   func()
	refused chan uint64
}

func (b *racer) Expire(ctx context.Context, key alive.Key, tombstone alive.Heartbeat, revision uint64) (bool, error) {
	b.renew()
	written, err := b.Bucket.Expire(ctx, key, tombstone, revision)
	if err == nil && !written {
		b.refused <- revision
	}
	return written, err
}

// TestARenewalBeforeTheTombstone has the candidate be late, and the tombstone be later.
func TestARenewalBeforeTheTombstone(t *testing.T) {
	w := newWard(t, policy.Managed)
	k1 := alive.Key{Group: "g", Candidate: "k1"}
	beat := alive.Heartbeat{Incarnation: "1", Lease: policy.Duration(lease)}
	var left, revision uint64 = 2, 0
	b := &racer{Bucket: w.bucket, refused: make(chan uint64, 10)}
	b.renew = func() {
		if left > 0 {
			left--
			var err error
			if revision, err = w.bucket.Renew(t.Context(), k1, beat, revision); err != nil {
				t.Error(err)
			}
		}
	}
	r := w.run("p1", b)
	w.say("", &journal.Join{Candidate: "k1", Incarnation: "1", Components: []string{"rest"}})
	b.renew()
	w.lives("k2")
	r.leads(t, "k1")
	select {
	case <-b.refused:
	case <-time.After(limit):
		require.Fail(t, "no tombstone was tried")
	}
	r.leads(t, "k1")
	began := time.Now()
	r.leads(t, "k2")
	require.GreaterOrEqual(t, time.Since(began), lease-100*time.Millisecond, "it has a lease from its renewal on")
	require.Empty(t, b.refused)
}

func TestATakeoverWaitsALease(t *testing.T) {
	w := newWard(t, policy.Managed)
	first := w.run("p1", w.bucket)
	k1 := w.lives("k1")
	w.lives("k2")
	first.leads(t, "k1")
	k1.die()
	first.end(t)
	began := time.Now()
	second := w.run("p2", w.bucket)
	second.leads(t, "k2")
	require.GreaterOrEqual(t, time.Since(began), lease)
}

func TestALostBucketExpiresNobody(t *testing.T) {
	w := newWard(t, policy.Managed)
	r := w.run("p1", w.bucket)
	k1, k2 := w.lives("k1"), w.lives("k2")
	r.leads(t, "k1")
	before, err := w.log.Last(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.log.JetStream().DeleteStream(t.Context(), "KV_alive"))
	k1.renewals(t, 12)
	require.Empty(t, w.kinds(before+1), "who makes its key anew goes on")

	require.NoError(t, w.log.JetStream().DeleteStream(t.Context(), "KV_alive"))
	k1.die()
	began := time.Now()
	k2.renewals(t, 2)
	r.leads(t, "k2")
	require.GreaterOrEqual(t, time.Since(began), lease)
}

// unwritable is a bucket in which no tombstone can be written at first.
type unwritable struct {
	*alive.Bucket
	mu    sync.Mutex
	tries int
}

func (b *unwritable) Expire(ctx context.Context, key alive.Key, tombstone alive.Heartbeat, revision uint64) (bool, error) {
	b.mu.Lock()
	b.tries++
	fails := b.tries < 3
	b.mu.Unlock()
	if fails {
		return false, fmt.Errorf("%w: test", alive.ErrUnknownOutcome)
	}
	return b.Bucket.Expire(ctx, key, tombstone, revision)
}

func TestATombstoneIsTriedAgain(t *testing.T) {
	w := newWard(t, policy.Managed)
	r := w.run("p1", &unwritable{Bucket: w.bucket})
	k1 := w.lives("k1")
	w.lives("k2")
	r.leads(t, "k1")
	k1.die()
	r.leads(t, "k2")
}

func TestAnAgentThatFallsSilentIsStale(t *testing.T) {
	w := newWard(t, policy.External)
	r := w.run("p1", w.bucket)
	k1 := w.lives("k1")
	reported := w.say("", &journal.Health{Candidate: "k1", Incarnation: "1", Check: "disk", Status: "pass", Run: 1})
	require.NoError(t, r.Wait(t.Context(), reported))
	k1.renewals(t, 9)
	require.Empty(t, w.kinds(reported+1))
	k1.die()
	r.until(t, "k1 is silent", func(v *view.View) bool { return v.Group("g").Candidates["k1"].Silent != nil })
	require.Equal(t, "stale", w.kinds(reported + 1)[0])
	sent, _ := k1.renewed()
	require.GreaterOrEqual(t, time.Since(sent), lease)
}

// deafened is a bucket that the test speaks for, and in which no tombstone can be written.
type deafened struct {
	to     chan alive.Listener
	wanted chan struct{}
}

func (b *deafened) Follow(ctx context.Context, to alive.Listener) error {
	b.to <- to
	<-ctx.Done()
	return context.Cause(ctx)
}

func (b *deafened) Expire(ctx context.Context, _ alive.Key, _ alive.Heartbeat, _ uint64) (bool, error) {
	select {
	case b.wanted <- struct{}{}:
	case <-ctx.Done():
	}
	return false, errors.New("test")
}

// wants waits until a tombstone is tried.
func (b *deafened) wants(t *testing.T) {
	t.Helper()
	select {
	case <-b.wanted:
	case <-time.After(limit):
		require.Fail(t, "no tombstone is tried")
	}
}

// tries waits, and counts the tombstones that are tried meanwhile.
func (b *deafened) tries(during time.Duration) (n int) {
	quiet := time.NewTimer(during)
	defer quiet.Stop()
	for {
		select {
		case <-b.wanted:
			n++
		case <-quiet.C:
			return n
		}
	}
}

// TestNothingIsTriedWhileNothingIsHeard has the watch break before a lease is over, and then while a tombstone is to be
// written.
func TestNothingIsTriedWhileNothingIsHeard(t *testing.T) {
	w := newWard(t, policy.Managed)
	b := &deafened{to: make(chan alive.Listener, 1), wanted: make(chan struct{})}
	r := w.run("p1", b)
	w.say("", &journal.Join{Candidate: "k1", Incarnation: "1", Components: []string{"rest"}})
	r.leads(t, "k1")
	to := <-b.to
	to.Began()
	to.Lost()
	require.Zero(t, b.tries(lease*3/2))

	began := time.Now()
	to.Began()
	b.wants(t)
	require.GreaterOrEqual(t, time.Since(began), lease)
	b.wants(t)
	to.Lost()
	require.LessOrEqual(t, b.tries(lease*3/4), 1, "one may have been under way")
}
