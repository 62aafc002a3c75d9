package candidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/internal/reason"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// tenure is the life of one term in this process, from when it is heard of until its work has ended and the journal knows.
type tenure struct {
	member *member
	term   *Term

	open  context.Context // ends when the journal has closed the term
	close context.CancelCauseFunc
	end   context.CancelCauseFunc // of the term's own context, which open contains

	before <-chan struct{} // closed when the work of the component's term before has ended; nil: there was none
	idle   chan struct{}   // closed when no work runs in this one any more

	pause time.Duration // before the work, after work that ended by itself

	worked time.Duration // how long the work took

	told     bool // to yield; of the member's loop
	finished bool // nothing more is done in it; of the member's loop
}

// tenure makes the life of a term that rests on ctx.
func (m *member) tenure(ctx context.Context, component, session string, epoch uint64) *tenure {
	t := &tenure{member: m, idle: make(chan struct{})}
	t.open, t.close = context.WithCancelCause(ctx)
	t.term = &Term{Component: component, Session: session, member: m, epoch: newEpoch(epoch)}
	t.term.ctx, t.end = context.WithCancelCause(t.open)
	return t
}

// lead has the service lead in a term that journald granted. Work begins only after that of the term before has ended, with
// a lease, and after a confirmation was taken.
func (t *tenure) lead() {
	lease := t.member.lease
	lease.hold(t.term, t.end)
	err := t.work()
	fenced := lease.drop(t.term)
	cause := context.Cause(t.term.ctx)
	t.end(nil)
	close(t.idle)
	clean := t.member.leaving(t) || t.release(reasonFor(err))
	t.close(nil)
	t.member.say(func(m *member) { m.ended(t, cause, clean && !fenced) })
}

func (t *tenure) work() error {
	ctx := t.term.ctx
	if t.before != nil {
		<-t.before
	}
	if !sleep(ctx, t.pause) {
		return context.Cause(ctx)
	}
	if err := t.member.lease.await(ctx, t.term); err != nil {
		return err
	}
	if err := t.term.Confirm(ctx, t.member.cfg.Address, t.member.cfg.Properties); err != nil {
		return err
	}
	if !t.term.Held() {
		return cmp.Or(context.Cause(ctx), ErrLeaseLost)
	}
	return t.serve()
}

// serve is the leader's work, whoever elected.
func (t *tenure) serve() error {
	ctx, logger := t.term.ctx, t.member.logger.With("component", t.term.Component, "session", t.term.Session)
	logger.Info("leading")
	began := t.member.cfg.clock()
	err := t.call(ctx)
	t.worked = t.member.cfg.clock() - began
	cause := context.Cause(ctx)
	logger.Info("leading no more", "cause", cause, "error", err)
	return cmp.Or(cause, err)
}

var errGone = errors.New("the leader's work ended its goroutine, without an answer")

// call is the service's own code, in a goroutine of its own: it may end that, as [runtime.Goexit] does.
func (t *tenure) call(ctx context.Context) error {
	answer := make(chan error, 1)
	go func() {
		err := errGone
		defer func() { answer <- err }()
		err = t.member.callbacks.OnGranted(ctx, t.term)
	}()
	return <-answer
}

// release tells the journal that the leader's work has stopped, and says whether the term was open until then. That it is
// closed by now may come of this very release, whose answer is still to come.
func (t *tenure) release(reason string) bool {
	ack, err := t.member.publish(t.member.life, t.term.Component, &journal.Release{Session: t.term.Session, Reason: reason})
	switch {
	case err == nil:
		return ack.Verdict == view.Applied || ack.Verdict == view.Duplicate
	case t.open.Err() == nil: // nobody else may lead before the lease has run out, so that it is not to be renewed
		t.member.die(fmt.Errorf("the end of %s can't be told: %w", t.term.Component, err))
	}
	return false
}

// yield has the term given up: the service is told, and then the term ends.
func (t *tenure) yield(y client.Yield, within time.Duration) {
	defer t.end(&Yielded{y})
	if t.member.callbacks.OnYield == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.term.ctx, workShare(within))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- t.member.callbacks.OnYield(ctx, t.term, y) }()
	select {
	case err := <-done:
		if err != nil {
			t.member.logger.Error("the service could not prepare to yield", "component", t.term.Component, "error", err)
		}
	case <-ctx.Done():
	}
}

// reasonFor is the word for the journal of why leading ended.
func reasonFor(err error) string {
	if _, ok := errors.AsType[*Yielded](err); ok {
		return "yielded"
	}
	switch {
	case err == nil:
		return "resigned"
	case errors.Is(err, ErrLeaseLost):
		return "lost"
	case errors.Is(err, errShutdown), errors.Is(err, context.Canceled), errors.Is(err, ErrTermOver), errors.Is(err, ErrReplaced):
		return "shutdown"
	}
	return "failed: " + reason.Of(err)
}
