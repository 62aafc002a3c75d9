package candidate

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// Whoever is replaced contends no more in an election of its own, and leads no more.
func TestAReplacedCandidateLeavesItsElection(t *testing.T) {
	run(t, func(t *testing.T) {
		w, l := newWorld(t, policy.Default()), newLatch()
		a := start(t, w, "a", l.use)
		w.await(t, "a leads", ledBy("a"))
		w.publish("", &journal.Join{Candidate: "a", Incarnation: "another", Components: []string{"web"}})
		<-a.done
		require.ErrorIs(t, a.err, ErrReplaced)
		require.False(t, a.leads())
		<-l.token // it was given back
	})
}

// strict is a link that refuses what the journal would.
type strict struct{ *link }

func (s *strict) Append(ctx context.Context, events ...journal.Event) ([]client.Ack, error) {
	for i := range events {
		if err := events[i].Validate(); err != nil {
			return nil, err
		}
	}
	return s.link.Append(ctx, events...)
}

// once is work that ends in a way of its own the first time, and leads afterwards.
func once(calls *atomic.Int32, first func() error) func(context.Context, *Term) error {
	return func(ctx context.Context, _ *Term) error {
		if calls.Add(1) == 1 {
			return first()
		}
		<-ctx.Done()
		return nil
	}
}

// However leader work ends by itself, the term is given up, and the candidate may lead again.
func TestWorkThatEndsInOddWays(t *testing.T) {
	for name, first := range map[string]func() error{
		"no UTF-8":           func() error { return errors.New("bad \xff byte") },
		"control characters": func() error { return errors.New("a\x00b\n\x1b[31m") },
		"no text":            func() error { return errors.New("") },
		"no goroutine any more": func() error {
			runtime.Goexit()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T) {
				w := newWorld(t, managed())
				var calls atomic.Int32
				start(t, w, "a", func(c *Config, cb *Callbacks) {
					c.Client = &strict{c.Client.(*link)}
					cb.OnGranted = once(&calls, first)
				})
				elapse(time.Minute)
				require.EqualValues(t, 2, calls.Load())
			})
		})
	}
}

// A lease that lapsed while the machine was suspended is not revived by the renewal that is answered first.
func TestALapsedLeaseIsNotRevived(t *testing.T) {
	now := time.Second
	l := newLease(&Config{Client: &link{}, clock: func() time.Duration { return now }, Logger: quiet()})
	p := managed()
	l.configure(&p)
	renew := func() {
		sent := now
		l.next()
		_, err := l.answered(attempt{sent: sent, lease: 15 * time.Second, revision: 1})
		require.NoError(t, err)
	}
	renew()
	ctx, end := context.WithCancelCause(t.Context())
	term := &Term{member: &member{lease: l}, ctx: ctx, managed: true, epoch: newEpoch(5)}
	l.hold(term, end)
	require.NoError(t, l.await(ctx, term))
	require.True(t, term.Held())
	now = time.Hour
	require.False(t, term.Held())
	renew()
	require.False(t, term.Held())
	require.ErrorIs(t, context.Cause(ctx), ErrLeaseLost)
	require.True(t, l.drop(term))
}

// What an operator sets makes no leader lose its lease, and no candidate spin.
func TestPoliciesAtTheirLimits(t *testing.T) {
	for name, change := range map[string]func(*policy.Policy){
		"renewed when it is nearly over": func(p *policy.Policy) { p.Lease.RenewEvery = policy.Duration(12 * time.Second) },
		"silent soon":                    func(p *policy.Policy) { p.Health.StaleAfter = policy.Duration(100 * time.Millisecond) },
		"a lease of two days": func(p *policy.Policy) {
			p.Lease = policy.Lease{
				Duration: policy.Duration(48 * time.Hour), RenewEvery: policy.Duration(time.Hour), ReleaseWithin: policy.Duration(time.Minute),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T) {
				p := managed()
				change(&p)
				w := newWorld(t, p)
				a := start(t, w, "a")
				elapse(10 * time.Second)
				require.True(t, a.leads())
				w.locked(func() {
					require.Less(t, w.revision, uint64(300))
					require.LessOrEqual(t, w.keys[keyOf("a")].Lease, policy.Duration(24*time.Hour))
				})
				elapse(time.Minute)
				require.Len(t, a.terms, 1)
			})
		})
	}
}

// Work that ends by itself now and then, after long times of leading, waits no longer each time.
func TestPausesAreForgotten(t *testing.T) {
	run(t, func(t *testing.T) {
		p := managed()
		p.Lease.Duration, p.Lease.RenewEvery = policy.Duration(time.Hour), policy.Duration(10*time.Minute)
		p.Health.StaleAfter = policy.Duration(time.Hour)
		w := newWorld(t, p)
		var ended time.Time
		var longest time.Duration
		start(t, w, "a", func(_ *Config, cb *Callbacks) {
			cb.OnGranted = func(ctx context.Context, _ *Term) error {
				if !ended.IsZero() {
					longest = max(longest, time.Since(ended))
				}
				sleep(ctx, 24*time.Hour)
				ended = time.Now()
				return nil
			}
		})
		elapse(10 * 24 * time.Hour)
		require.NotZero(t, ended)
		require.Less(t, longest, 2*time.Second)
	})
}

// Whoever stopped too late, so that its lease was ended, takes part again when it has.
func TestASlowStopIsNotForEver(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a")
		w.await(t, "a leads", ledBy("a"))
		b := start(t, w, "b")
		w.await(t, "b has joined", joined("b"))
		pass(w, "a", "b")
		a.stops(func(context.Context) error { <-time.After(50 * time.Second); return nil })
		w.publish("web", &journal.Transfer{To: "b", Order: journal.Order{Actor: "alice", Reason: "maintenance"}})
		w.await(t, "b leads", ledBy("b"))
		require.True(t, a.leads(), "its work has not stopped")
		elapse(time.Minute)
		a.stops(nil)
		b.end()
		<-b.done
		w.await(t, "a leads again", ledBy("a"))
		require.True(t, a.leads())
	})
}

// refusing is a link to a journal that refuses everything for a while, as one does to whom credentials say nothing any more.
type refusing struct {
	*link
	on atomic.Bool
}

func (r *refusing) Append(ctx context.Context, events ...journal.Event) ([]client.Ack, error) {
	if r.on.Load() {
		return nil, journal.ErrInvalid
	}
	return r.link.Append(ctx, events...)
}

// A release that is refused for good ends the candidate, so that its lease ends too, and somebody else may lead.
func TestARefusedReleaseEndsTheCandidate(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		var r *refusing
		end := make(chan struct{})
		a := start(t, w, "a", func(c *Config, cb *Callbacks) {
			r = &refusing{link: c.Client.(*link)}
			c.Client = r
			cb.OnGranted = func(context.Context, *Term) error { <-end; return nil }
		})
		w.await(t, "a leads", ledBy("a"))
		start(t, w, "b")
		w.await(t, "b has joined", joined("b"))
		r.on.Store(true)
		close(end)
		<-a.done
		require.ErrorIs(t, a.err, journal.ErrInvalid)
		w.await(t, "b leads", ledBy("b"))
	})
}

func TestNobodyJoinsInAContextThatHasEnded(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, Run(ctx, Config{
			Client: &link{world: w}, Name: "a", Components: []string{"web"}, Address: "http://a", Logger: quiet(), clock: monotonic(),
		}, Callbacks{OnGranted: (&service{}).lead}))
		require.Len(t, w.said(t, "policy"), 1)
		w.read(func(g *view.Group) { require.Empty(t, g.Candidates) })
	})
}

// late is a link whose answer to a join takes its time.
type late struct{ *link }

func (l *late) Append(ctx context.Context, events ...journal.Event) ([]client.Ack, error) {
	acks, err := l.link.Append(ctx, events...)
	if _, ok := events[0].Data.(*journal.Join); ok {
		sleep(ctx, 2*time.Second)
	}
	return acks, err
}

// Whoever is made to leave before it knows that it has joined joins again.
func TestALeaveThatComesBeforeTheAnswer(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		start(t, w, "a", func(c *Config, _ *Callbacks) { c.Client, c.Incarnation = &late{c.Client.(*link)}, "one" })
		elapse(time.Second)
		w.publish("", &journal.Leave{Candidate: "a", Incarnation: "one", Reason: "test"})
		w.await(t, "a leads", ledBy("a"))
	})
}

// A hand-over in good order takes no more words than it needs: nobody joins anew.
func TestHandOversTakeNoJoin(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a", newDisk().check)
		w.await(t, "a leads", ledBy("a"))
		b := start(t, w, "b", newDisk().check)
		w.await(t, "b is fit", fit("b"))
		a.link.slowDown(100 * time.Millisecond) // what comes of a release is seen before its answer
		b.link.slowDown(100 * time.Millisecond)
		for i := range 40 {
			next := []*service{b, a}[i%2]
			w.publish("web", &journal.Transfer{To: next.name, Order: journal.Order{Actor: "alice", Reason: "test"}})
			w.await(t, next.name+" leads", ledBy(next.name))
			elapse(2 * time.Minute) // until nobody is held down
		}
		require.Len(t, w.said(t, "join"), 2)
	})
}

// An end in good order is one whatever ends the context, such as a signal.
func TestAnEndIsNoFailure(t *testing.T) {
	run(t, func(t *testing.T) {
		w, l := newWorld(t, policy.Default()), newLatch()
		ctx, end := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, Config{
				Client: &link{world: w}, Name: "a", Components: []string{"web"}, Address: "http://a", Logger: quiet(), clock: monotonic(), Elector: l.elect,
			}, Callbacks{OnGranted: (&service{}).lead})
		}()
		w.await(t, "a leads", ledBy("a"))
		signal := errors.New("terminated signal received")
		end(signal)
		require.NoError(t, <-done)
		require.Equal(t, "shutdown", w.said(t, "revoke")[0].Event.Data.(*journal.Revoke).Reason)
	})
}
