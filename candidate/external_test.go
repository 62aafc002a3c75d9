package candidate

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// latch is an election that hands a component to whoever takes it next.
type latch struct{ token chan struct{} }

func newLatch() *latch {
	l := &latch{make(chan struct{}, 1)}
	l.token <- struct{}{}
	return l
}

func (l *latch) elect(ctx context.Context, _ string, lead func(context.Context, Won) error) error {
	select {
	case <-l.token:
	case <-ctx.Done():
		return nil
	}
	defer func() { l.token <- struct{}{} }()
	return lead(ctx, Won{})
}

func (l *latch) use(c *Config, _ *Callbacks) { c.Elector = l.elect }

func pass(w *world, names ...string) {
	for _, n := range names {
		w.publish("", &journal.Health{Candidate: n, Incarnation: w.incarnation(n), Check: "x", Status: "pass", Run: 1})
	}
}

func joined(name string) func(*view.Group) bool {
	return func(g *view.Group) bool {
		return g != nil && g.Candidates[name] != nil && g.Candidates[name].Joined != 0
	}
}

func TestAnElectorsTermIsRecordedAndYielded(t *testing.T) {
	run(t, func(t *testing.T) {
		w, l := newWorld(t, policy.Default()), newLatch()
		a := start(t, w, "a", l.use)
		w.await(t, "a leads", ledBy("a"))
		b := start(t, w, "b", l.use)
		w.await(t, "b has joined", joined("b"))
		pass(w, "a", "b")
		epoch, err := a.term(t).Epoch(t.Context())
		require.NoError(t, err)
		w.read(func(g *view.Group) { require.Equal(t, g.Components["web"].Term.Epoch, epoch) })
		w.publish("web", &journal.Transfer{To: "b", Order: journal.Order{Actor: "alice", Reason: "maintenance"}})
		w.await(t, "b leads", ledBy("b"))
		synctest.Wait()
		require.True(t, b.leads())
		_, yielded := errors.AsType[*Yielded](a.cause(t))
		require.True(t, yielded)
		require.Equal(t, "yielded", w.said(t, "revoke")[0].Event.Data.(*journal.Revoke).Reason)

		b.end() // a stands back for the time that the policy has for it
		<-b.done
		require.NoError(t, b.err)
		before := time.Now()
		w.await(t, "a leads again", func(g *view.Group) bool { return ledBy("a")(g) && g.Components["web"].Term.Epoch > epoch })
		require.Greater(t, time.Since(before), 50*time.Second)
	})
}

// An election of the service's own goes on while the journal is out of reach, and the journal learns all of it.
func TestAnElectorLeadsWithoutTheJournal(t *testing.T) {
	run(t, func(t *testing.T) {
		w, l := newWorld(t, policy.Default()), newLatch()
		a := start(t, w, "a", func(c *Config, cb *Callbacks) {
			l.use(c, cb)
			c.Client.(*link).cut = true
		})
		elapse(time.Hour)
		require.True(t, a.leads())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.term(t).Epoch(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.link.set(false, false)
		w.await(t, "a leads", ledBy("a"))
		require.Len(t, a.terms, 1)
	})
}

func TestAnElectorThatFailsIsTriedAgain(t *testing.T) {
	run(t, func(t *testing.T) {
		w, l := newWorld(t, policy.Default()), newLatch()
		tries := 0
		start(t, w, "a", func(c *Config, _ *Callbacks) {
			c.Elector = func(ctx context.Context, component string, lead func(context.Context, Won) error) error {
				if tries++; tries < 5 {
					return errors.New("no quorum")
				}
				return l.elect(ctx, component, lead)
			}
		})
		w.await(t, "a leads", ledBy("a"))
	})
}

// The election takes place in another process: a yield is carried out by the hook, again and again until it can be.
func TestBesideAnotherProcess(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, policy.Default())
		var asked atomic.Int32
		fit := make(chan string, 1)
		a := start(t, w, "a", func(c *Config, cb *Callbacks) {
			c.Beside = true
			cb.OnYield = func(_ context.Context, term *Term, y client.Yield) error {
				require.Equal(t, "S1", term.Session)
				require.Equal(t, "b", y.To)
				if asked.Add(1) < 3 {
					return errors.New("it does not answer")
				}
				return nil
			}
			cb.OnFit = func(_ context.Context, component string) error { fit <- component; return nil }
		})
		w.await(t, "a has joined", joined("a"))
		w.publish("web", &journal.Grant{Candidate: "a", Session: "S1"})
		w.publish("", &journal.Join{Candidate: "b", Incarnation: "b1", Components: []string{"web"}})
		pass(w, "a", "b")
		synctest.Wait()
		require.Zero(t, asked.Load())
		w.publish("web", &journal.Transfer{To: "b", Order: journal.Order{Actor: "alice", Reason: "maintenance"}})
		w.await(t, "it is revoked", func(g *view.Group) bool { return g.Components["web"].Term == nil })
		require.EqualValues(t, 3, asked.Load())
		require.Equal(t, "web", <-fit)
		a.end()
		<-a.done
		require.NoError(t, a.err)
	})
}
