package candidate

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
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
	lease.drop(t.term)
	cause := context.Cause(t.term.ctx)
	t.end(nil)
	close(t.idle)
	if !t.member.leaving(t) {
		t.release(reason(err))
	}
	t.close(nil)
	t.member.say(func(m *member) { m.ended(t, cause) })
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
	err := t.member.callbacks.OnGranted(ctx, t.term)
	cause := context.Cause(ctx)
	logger.Info("leading no more", "cause", cause, "error", err)
	return cmp.Or(cause, err)
}

// release tells the journal that the leader's work has stopped.
func (t *tenure) release(reason string) {
	_, err := t.member.publish(t.open, t.term.Component, &journal.Release{Session: t.term.Session, Reason: reason})
	if err != nil && t.open.Err() == nil {
		t.member.logger.Error("the release was refused", "component", t.term.Component, "epoch", t.term.epoch.known(), "error", err)
	}
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

// reason is the word for the journal of why leading ended.
func reason(err error) string {
	if _, ok := errors.AsType[*Yielded](err); ok {
		return "yielded"
	}
	switch {
	case err == nil:
		return "resigned"
	case errors.Is(err, ErrLeaseLost):
		return "lost"
	case errors.Is(err, context.Canceled), errors.Is(err, ErrTermOver), errors.Is(err, ErrReplaced):
		return "shutdown"
	}
	return "failed: " + excerpt(err.Error())
}

// excerpt is the beginning of a text that somebody else wrote.
func excerpt(text string) string {
	const most = 256
	if len(text) > most {
		text = text[:most] + " …"
	}
	return text
}
