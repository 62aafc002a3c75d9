package candidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// Run takes part until ctx ends: then leader work is told to stop, what stopped is released, the candidate leaves, and Run
// returns nil. It returns an error where it can't go on, such as [ErrReplaced], or where leader work has not stopped within
// [Config.StopWithin]: the lease is renewed no more then, and the process should end.
//
// A journal that is out of reach is no error. Whoever leads by a lease stops in time, and goes on as a candidate when the
// journal is back.
func Run(ctx context.Context, cfg Config, callbacks Callbacks) error {
	if err := cfg.complete(&callbacks); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to end before it began
	}
	m, err := newMember(ctx, cfg, callbacks)
	if err != nil {
		return err
	}
	return m.run(ctx)
}

// member is a candidate that takes part. Its loop alone changes what it knows.
type member struct {
	cfg       Config
	callbacks Callbacks
	logger    *slog.Logger
	lease     *lease
	health    *reporter
	rest      *rest

	life  context.Context // of everything, beyond the end of Run's own context until all has stopped
	die   context.CancelCauseFunc
	tasks sync.WaitGroup
	inbox chan func(*member)

	// Of the loop alone.
	joined  uint64 // sequence of our newest join
	joining bool
	rejoin  bool                       // once no work runs
	live    map[string]*tenure         // by session, until the journal shows that it is over
	idle    map[string]<-chan struct{} // the newest tenure's, by component
	pauses  map[string]time.Duration   // before the next work, by component
	ending  bool                       // nothing begins any more
	seen    client.Standing            // the newest; Sequence 0: none yet
	differs bool                       // the group elects in another way
}

func newMember(ctx context.Context, cfg Config, callbacks Callbacks) (m *member, err error) {
	m = &member{
		cfg: cfg, callbacks: callbacks, inbox: make(chan func(*member), 16),
		logger: cfg.Logger.With("candidate", cfg.Name, "group", cfg.Client.Group()), lease: newLease(&cfg),
		live: map[string]*tenure{}, idle: map[string]<-chan struct{}{}, pauses: map[string]time.Duration{}, rest: newRest(cfg.clock),
	}
	if m.health, err = newReporter(m, cfg.Checks); err != nil {
		return nil, fmt.Errorf("candidate: %w", err)
	}
	m.life, m.die = context.WithCancelCause(context.WithoutCancel(ctx))
	return m, nil
}

func (m *member) run(ctx context.Context) error {
	m.task(func() error { return m.lease.keep(m.life) })
	m.task(func() error {
		return m.cfg.Client.Follow(m.life, m.cfg.Name, func(s client.Standing) error {
			m.say(func(m *member) { m.stand(s) })
			return nil
		})
	})
	m.tasks.Go(func() { m.health.run(m.life) })
	m.join()
	contending, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(shutdown(ctx)) })()
	defer context.AfterFunc(m.life, func() { stop(context.Cause(m.life)) })()
	if m.cfg.Elector != nil {
		for _, component := range m.cfg.Components {
			m.tasks.Go(func() { m.contend(contending, component) })
		}
	}
	m.loop(ctx)
	cause := context.Cause(m.life)
	if cause == nil {
		cause = shutdown(ctx)
	}
	stop(cause)
	return m.finish(ctx, cause)
}

// task runs something that the member can't go on without.
func (m *member) task(run func() error) {
	m.tasks.Go(func() {
		if err := run(); err != nil && m.life.Err() == nil {
			m.die(err)
		}
	})
}

// say hands something to the loop.
func (m *member) say(f func(*member)) {
	select {
	case m.inbox <- f:
	case <-m.life.Done():
	}
}

func (m *member) loop(ctx context.Context) {
	for {
		select {
		case f := <-m.inbox:
			f(m)
		case <-ctx.Done():
			return
		case <-m.life.Done():
			return
		}
	}
}

// join says that the candidate may lead, in a goroutine of its own: the journal may be out of reach.
func (m *member) join() {
	m.joining, m.rejoin = true, false
	m.task(func() error {
		ack, err := m.publish(m.life, "", m.cfg.join())
		if err != nil {
			return err
		}
		m.say(func(m *member) {
			m.joining, m.joined = false, ack.Sequence
			m.stand(m.seen) // it may have been told of what came after the join before the join was answered
		})
		return nil
	})
}

// stand takes note of where the candidate stands.
func (m *member) stand(s client.Standing) {
	if m.seen = s; s.Sequence == 0 {
		return
	}
	m.lease.configure(&s.Policy)
	m.rest.configure(&s.Policy)
	current := m.joined != 0 && !m.joining && s.Sequence >= m.joined
	m.health.stand(&s, current)
	if current && s.Incarnation == m.cfg.Incarnation {
		m.lease.joined()
		m.compareElections(&s.Policy)
	}
	if current && s.Incarnation != m.cfg.Incarnation {
		m.die(fmt.Errorf("%w: incarnation %s of %s", ErrReplaced, s.Incarnation, m.cfg.Name))
		return
	}
	if current && !s.Joined && !m.ending && !m.rejoin {
		m.logger.Warn("somebody had the candidate leave; it joins again")
		m.rejoin = true
	}
	m.compare(&s)
	m.settle()
}

// compareElections says once where the group elects in another way than this candidate takes part in: nobody would lead.
func (m *member) compareElections(p *policy.Policy) {
	managed := m.cfg.Elector == nil && !m.cfg.Beside
	if differs := managed != (p.Election == policy.Managed); differs == m.differs {
		return
	} else if m.differs = differs; !differs {
		return
	}
	m.logger.Warn("this candidate can't lead: its election is not the group's", "election", p.Election,
		"advice", "where the group's policy says managed, a candidate has no elector, and an agent says election: managed")
}

// compare has the terms here follow those of the journal.
func (m *member) compare(s *client.Standing) {
	open := map[string]bool{}
	for i := range s.Terms {
		seen := &s.Terms[i]
		open[seen.Session] = !seen.Released
		m.follow(seen, &s.Policy)
	}
	for session, t := range m.live {
		switch {
		case open[session] || s.Sequence < t.term.epoch.known() || t.term.epoch.known() == 0:
		case t.finished:
			delete(m.live, session)
		case m.cfg.Elector == nil:
			t.close(ErrTermOver)
		}
	}
}

// follow begins what has to be done in a term, or has it given up.
func (m *member) follow(seen *client.Term, p *policy.Policy) {
	t := m.live[seen.Session]
	if t == nil {
		if t = m.begin(seen, p); t == nil {
			return
		}
	}
	if t.term.managed && p.Election != policy.Managed {
		t.end(fmt.Errorf("%w: the group's election is %s by now", ErrTermOver, p.Election))
	}
	if seen.Yield != nil && !t.told && !t.finished {
		t.told = true
		y, within := *seen.Yield, time.Duration(p.Lease.ReleaseWithin)
		if m.cfg.Beside {
			m.tasks.Go(func() { t.giveUp(y) })
		} else {
			m.tasks.Go(func() { t.yield(y, within) })
		}
	}
}

// begin begins a term that the journal speaks of, nil where it is none of ours to begin.
func (m *member) begin(seen *client.Term, p *policy.Policy) *tenure {
	managed := p.Election == policy.Managed
	switch {
	case m.ending, seen.Released, m.cfg.Elector != nil, managed == m.cfg.Beside:
		return nil
	case managed && seen.Incarnation != m.cfg.Incarnation:
		return nil // an earlier life's, whose lease has to run out
	}
	t := m.tenure(m.life, seen.Component, seen.Session, seen.Epoch)
	m.live[seen.Session] = t
	if m.cfg.Beside {
		return t
	}
	t.term.managed = true
	t.term.attempt.Store(seen.Attempt)
	t.before, t.pause = m.idle[seen.Component], m.pauses[seen.Component]
	m.idle[seen.Component] = t.idle
	m.tasks.Go(t.lead)
	return t
}

// ended notes that nothing more is done in a term, and why it ended; nil: its work had ended by itself. Where it was not
// closed by this candidate's own word a join says that the candidate has stopped, and may be chosen again.
func (m *member) ended(t *tenure, cause error, clean bool) {
	t.finished = true
	m.rejoin = m.rejoin || !clean || errors.Is(cause, ErrLeaseLost)
	component := t.term.Component
	switch {
	case cause != nil || t.worked > longestRest:
		delete(m.pauses, component)
	default:
		m.pauses[component] = min(max(2*m.pauses[component], time.Second), longestRest)
	}
	m.settle()
}

// longestRest is the longest pause after work that ended by itself.
const longestRest = 30 * time.Second

// settle joins anew where that is due, and nothing runs that a join would deny.
func (m *member) settle() {
	if m.rejoin && !m.joining && !m.ending && m.busy() == nil {
		m.join()
	}
}

// busy are the terms in which something is still done.
func (m *member) busy() (busy []*tenure) {
	for _, t := range m.live {
		if !t.finished && !m.cfg.Beside {
			busy = append(busy, t)
		}
	}
	return busy
}

// leaving says whether the candidate leaves now that the work of a term has ended: the journal closes the term with that,
// and does not think of this candidate when it opens the next one.
func (m *member) leaving(t *tenure) bool {
	answer := make(chan bool, 1)
	m.say(func(m *member) {
		busy := m.busy()
		answer <- m.ending && len(busy) == 1 && busy[0] == t
	})
	select {
	case leaving := <-answer:
		return leaving
	case <-m.life.Done():
		return false
	}
}

// finish has everything stop, and leaves.
func (m *member) finish(ctx context.Context, cause error) error {
	m.ending = true
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.StopWithin)
	defer cancel()
	for _, t := range m.live {
		t.end(cause)
	}
	err := cmp.Or(m.stopped(bounded), m.answered(bounded))
	if err == nil && m.life.Err() == nil {
		m.leave(bounded)
	}
	err = cmp.Or(context.Cause(m.life), err)
	m.die(nil)
	if !m.waited(bounded) {
		err = errors.Join(err, fmt.Errorf("leader work has not stopped within %s; end the process before its lease does", m.cfg.StopWithin))
	}
	if err != nil {
		return fmt.Errorf("candidate %s in %s: %w", m.cfg.Name, m.cfg.Client.Group(), err)
	}
	return nil
}

// stopped returns when no leader work runs any more, and the journal knows.
func (m *member) stopped(bounded context.Context) error {
	for m.busy() != nil {
		select {
		case f := <-m.inbox:
			f(m)
		case <-m.life.Done():
			return nil
		case <-bounded.Done():
			return m.overdue()
		}
	}
	return nil
}

// answered waits for a join that is under way, so that no leave is stored before it: what joins after that stays joined.
func (m *member) answered(bounded context.Context) error {
	bounded, cancel := context.WithTimeout(bounded, m.cfg.StopWithin/4)
	defer cancel()
	for m.joining {
		select {
		case f := <-m.inbox:
			f(m)
		case <-m.life.Done():
			return nil
		case <-bounded.Done():
			return nil // the journal is away, and what it may have is found to be silent
		}
	}
	return nil
}

// leave takes no more than half of the time, so that a journal which is away is not taken for work that does not stop.
func (m *member) leave(bounded context.Context) {
	bounded, cancel := context.WithTimeout(bounded, m.cfg.StopWithin/2)
	defer cancel()
	_, err := m.publish(bounded, "", &journal.Leave{Candidate: m.cfg.Name, Incarnation: m.cfg.Incarnation, Reason: "shutdown"})
	if err != nil {
		m.logger.Warn("the candidate could not leave; it counts as silent after a while", "error", err)
	}
}

// waited says whether all that was begun has ended in time.
func (m *member) waited(bounded context.Context) bool {
	done := make(chan struct{})
	go func() { m.tasks.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-bounded.Done():
		return false
	}
}

// overdue says what has not come to its end.
func (m *member) overdue() error {
	var errs []error
	for _, t := range m.busy() {
		select {
		case <-t.idle:
			errs = append(errs, fmt.Errorf("the end of %s could not be told the journal", t.term.Component))
		default:
		}
	}
	return errors.Join(errs...)
}
