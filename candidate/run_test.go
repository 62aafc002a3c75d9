package candidate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// service is a candidate whose work is to note that it leads.
type service struct {
	link *link
	name string
	end  context.CancelFunc
	done chan struct{}
	err  error

	mu      sync.Mutex
	terms   []*Term
	causes  []error
	leading bool
	stop    func(ctx context.Context) error // the work, after it was told to stop; nil: it stops at once
}

func start(t *testing.T, w *world, name string, change ...func(*Config, *Callbacks)) *service {
	s := &service{link: &link{world: w}, name: name, done: make(chan struct{})}
	cfg := Config{
		Client: s.link, Name: name, Components: []string{"web"}, Address: "http://" + name, Incarnation: newID(), Logger: quiet(), clock: monotonic(),
	}
	callbacks := Callbacks{OnGranted: s.lead}
	for _, f := range change {
		f(&cfg, &callbacks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.end = cancel
	go func() {
		defer close(s.done)
		s.err = Run(ctx, cfg, callbacks)
	}()
	t.Cleanup(func() { cancel(); <-s.done })
	return s
}

func (s *service) lead(ctx context.Context, term *Term) error {
	s.mu.Lock()
	s.terms, s.leading = append(s.terms, term), true
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	var err error
	if stop != nil {
		err = stop(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes, s.leading = append(s.causes, context.Cause(ctx)), false
	return err
}

// stops has the work take its time to stop.
func (s *service) stops(how func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = how
}

func (s *service) leads() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leading
}

// term is the newest one.
func (s *service) term(t *testing.T) *Term {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.terms)
	return s.terms[len(s.terms)-1]
}

func (s *service) cause(t *testing.T) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.causes)
	return s.causes[len(s.causes)-1]
}

// ledBy is a condition on the component's term.
func ledBy(name string) func(g *view.Group) bool {
	return func(g *view.Group) bool {
		c := g.Components["web"]
		return c != nil && c.Term != nil && c.Term.Confirmed && c.Term.Candidate == name
	}
}

func run(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, f)
}

func TestLeadsFromConfirmationToRelease(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a")
		w.await(t, "a leads", ledBy("a"))
		synctest.Wait()
		require.True(t, a.leads())
		term := a.term(t)
		require.True(t, term.Held())
		epoch, err := term.Epoch(t.Context())
		require.NoError(t, err)
		w.read(func(g *view.Group) {
			require.Equal(t, g.Components["web"].Term.Epoch, epoch)
			require.Equal(t, "http://a", g.Components["web"].Leader().Address)
		})
		b := start(t, w, "b")
		synctest.Wait()
		require.False(t, b.leads())
		a.end()
		<-a.done
		require.NoError(t, a.err)
		require.False(t, term.Held())
		require.ErrorIs(t, a.cause(t), context.Canceled)
		w.await(t, "b leads", ledBy("b"))
		synctest.Wait()
		require.True(t, b.leads())
		w.read(func(g *view.Group) { require.Zero(t, g.Candidates["a"].Joined) })
	})
}

func TestYieldsWhenToldAndOnlyThenTheNextOneLeads(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		told := make(chan client.Yield, 1)
		a := start(t, w, "a", func(_ *Config, cb *Callbacks) {
			cb.OnYield = func(_ context.Context, term *Term, y client.Yield) error {
				require.True(t, term.Held())
				told <- y
				return nil
			}
		})
		w.await(t, "a leads", ledBy("a"))
		b := start(t, w, "b")
		a.stops(func(context.Context) error {
			<-time.After(3 * time.Second) // the work that stopping takes
			require.False(t, b.leads())
			return nil
		})
		w.await(t, "b has joined and is heard", func(g *view.Group) bool { return g.Candidates["b"] != nil && g.Candidates["b"].Joined != 0 })
		for _, c := range []string{"a", "b"} {
			w.publish("", &journal.Health{Candidate: c, Incarnation: w.incarnation(c), Check: "x", Status: "pass", Run: 1})
		}
		w.publish("web", &journal.Transfer{To: "b", Order: journal.Order{Actor: "alice", Reason: "maintenance"}})
		w.await(t, "b leads", ledBy("b"))
		y := <-told
		require.Equal(t, "b", y.To)
		require.True(t, y.Ordered)
		yielded, ok := errors.AsType[*Yielded](a.cause(t))
		require.True(t, ok)
		require.Equal(t, "b", yielded.To)
		synctest.Wait()
		require.True(t, b.leads())
		require.False(t, a.leads())
	})
}

func (w *world) incarnation(name string) (incarnation string) {
	w.read(func(g *view.Group) { incarnation = g.Candidates[name].Incarnation })
	return incarnation
}

// A candidate that is cut off stops before anybody else can be granted, and takes part again when it is back.
func TestCutOffStopsInTimeAndComesBack(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a")
		w.await(t, "a leads", ledBy("a"))
		b := start(t, w, "b")
		synctest.Wait()
		a.link.set(true, false)
		w.await(t, "b leads", ledBy("b"))
		require.False(t, a.term(t).Held())
		require.False(t, a.leads())
		require.ErrorIs(t, a.cause(t), ErrLeaseLost)
		a.link.set(false, false)
		b.end()
		<-b.done
		w.await(t, "a leads again", ledBy("a"))
		synctest.Wait()
		require.True(t, a.leads())
		require.Len(t, a.terms, 2)
	})
}

// Leader work that does not stop keeps its candidate from leading again, and Run from waiting for ever.
func TestWorkThatHangs(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a")
		free := make(chan struct{})
		a.stops(func(context.Context) error { <-free; return nil })
		w.await(t, "a leads", ledBy("a"))
		a.link.set(true, false)
		b := start(t, w, "b")
		w.await(t, "b leads", ledBy("b"))
		require.False(t, a.term(t).Held())
		a.link.set(false, false)
		b.end()
		<-b.done
		elapse(5 * time.Minute) // the journal may grant it the component again
		require.Len(t, a.terms, 1)
		a.end()
		<-a.done
		require.ErrorContains(t, a.err, "has not stopped within 15s")
		close(free)
	})
}

// Every answer is lost, for as long as it takes: nothing is done twice, and the candidate leads in the end.
func TestLostAnswers(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a")
		a.link.set(false, true)
		elapse(20 * time.Second)
		a.link.set(false, false)
		w.await(t, "a leads", ledBy("a"))
		synctest.Wait()
		require.True(t, a.leads())
		require.Len(t, w.said(t, "join"), 1)
	})
}

func TestWorkThatEndsByItselfGivesTheTermUp(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		start(t, w, "a", func(_ *Config, cb *Callbacks) {
			cb.OnGranted = func(context.Context, *Term) error { return errors.New("the disk is gone") }
		})
		w.await(t, "a was granted", func(g *view.Group) bool { return g != nil && g.Components["web"] != nil })
		b := start(t, w, "b", func(c *Config, _ *Callbacks) { c.Priority = -1 })
		w.await(t, "b leads", ledBy("b"))
		synctest.Wait()
		require.True(t, b.leads())
		require.Equal(t, "failed: the disk is gone", w.said(t, "release")[0].Event.Data.(*journal.Release).Reason)
	})
}

// A service that fails at once every time does not spin through terms.
func TestFailingWorkIsTriedMoreAndMoreSeldom(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		tries := 0
		start(t, w, "a", func(_ *Config, cb *Callbacks) {
			cb.OnGranted = func(context.Context, *Term) error { tries++; return errors.New("no") }
		})
		elapse(10 * time.Minute)
		synctest.Wait()
		require.Greater(t, tries, 10)
		require.Less(t, tries, 30)
	})
}

func TestANewerProcessOfTheNameReplaces(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a")
		w.await(t, "a leads", ledBy("a"))
		second := start(t, w, "a")
		<-a.done
		require.ErrorIs(t, a.err, ErrReplaced)
		require.ErrorIs(t, a.cause(t), ErrReplaced)
		w.await(t, "the second one leads", func(g *view.Group) bool {
			return ledBy("a")(g) && g.Components["web"].Term.Incarnation == w.core.View().Group(group).Candidates["a"].Incarnation
		})
		synctest.Wait()
		require.True(t, second.leads())
	})
}

// A probe that hangs lets the lease run out: a stalled disk can't keep one.
func TestAHangingProbeCostsTheLease(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		var mu sync.Mutex
		stalled := make(chan struct{})
		hang := false
		a := start(t, w, "a", func(c *Config, _ *Callbacks) {
			c.Probe = func(context.Context) error {
				mu.Lock()
				h := hang
				mu.Unlock()
				if h {
					<-stalled
				}
				return nil
			}
		})
		w.await(t, "a leads", ledBy("a"))
		start(t, w, "b")
		mu.Lock()
		hang = true
		mu.Unlock()
		w.await(t, "b leads", ledBy("b"))
		require.False(t, a.leads())
		require.ErrorIs(t, a.cause(t), ErrLeaseLost)
		close(stalled)
	})
}

// The bucket is lost with all servers that had it: whoever leads makes its key again, and goes on.
func TestTheBucketIsLost(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a")
		w.await(t, "a leads", ledBy("a"))
		w.locked(func() {
			clear(w.keys)
			w.revision = 0
			w.core.Listen()
		})
		elapse(time.Minute)
		require.True(t, a.leads())
		require.Len(t, a.terms, 1)
		w.locked(func() { require.Len(t, w.keys, 1) })
	})
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	err := Run(t.Context(), Config{Name: "a", Beside: true, StopWithin: -1}, Callbacks{})
	for _, word := range []string{"Client is missing", "Logger is missing", "StopWithin is negative", "OnYield is missing", "Components must name"} {
		require.ErrorContains(t, err, word)
	}
	err = Run(t.Context(), Config{Client: &link{}, Logger: quiet(), Name: "", Components: []string{"web"}}, Callbacks{OnGranted: (&service{}).lead})
	require.ErrorContains(t, err, "candidate")
}
