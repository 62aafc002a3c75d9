package candidate

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// Elector is an election that is not journald's: Kubernetes leases, a Curator latch, or whatever a service has.
//
// It contends for one component until it has won or ctx has ended. Having won it calls lead, with a context that ends no
// later than its leadership, and gives the leadership up when lead returns. It returns nil then, or why it could not
// contend; it is called again after a pause. lead returns soon after its context has ended, when the service is to yield,
// or when the service's work ends by itself.
type Elector func(ctx context.Context, component string, lead func(context.Context, Won) error) error

// Won is what an elector gives to whoever wins.
type Won struct {
	Session string        // of this leadership and no other; empty: one is made
	Lock    *journal.Lock // the elector's object at the moment of winning, where it has revisions that rise; nil: unknown
}

const contendAgain = time.Second

// contend contends for a component again and again, but not while it has to stand back.
func (m *member) contend(ctx context.Context, component string) {
	for m.rest.over(ctx, component) {
		err := m.cfg.Elector(ctx, component, func(ctx context.Context, won Won) error { return m.won(ctx, component, won) })
		if err != nil && ctx.Err() == nil {
			m.logger.Error("contending failed", "component", component, "error", err, "retryIn", contendAgain)
			sleep(ctx, contendAgain)
		}
	}
}

// won has the service lead, and the journal told of it. The journal may be out of reach: it is told when it is back.
func (m *member) won(ctx context.Context, component string, won Won) error {
	if ctx.Err() != nil {
		return nil
	}
	if won.Session == "" {
		won.Session = uuid.NewString()
	}
	t := m.tenure(ctx, component, won.Session, 0)
	defer t.close(nil)
	m.say(func(m *member) { m.live[won.Session] = t })
	granted := t.after(nil, &journal.Grant{Candidate: m.cfg.Name, Session: won.Session, Lock: won.Lock})
	confirmed := t.after(granted, t.term.confirmation(m.cfg.Address, m.cfg.Properties))
	err := t.serve()
	told := t.term.ctx.Err() != nil
	t.end(nil)
	close(t.idle)
	if _, yielded := errors.AsType[*Yielded](err); yielded {
		m.rest.begin(component)
	}
	revoked := t.after(confirmed, &journal.Revoke{Session: won.Session, Candidate: m.cfg.Name, Reason: reasonFor(err)})
	m.tasks.Go(func() {
		<-revoked
		m.say(func(m *member) { m.ended(t, ErrTermOver, true) })
	})
	if told {
		return nil
	}
	return err
}

// after stores something about a term when something else is stored; the channel is closed when it is, or can't be.
func (t *tenure) after(first <-chan struct{}, data journal.Data) <-chan struct{} {
	stored := make(chan struct{})
	t.member.tasks.Go(func() {
		defer close(stored)
		if first != nil {
			<-first
		}
		ack, err := t.member.publish(t.member.life, t.term.Component, data)
		switch {
		case err != nil:
			t.member.logger.Error("the journal could not be told", "component", t.term.Component, "session", t.term.Session, "error", err)
			return
		case ack.Verdict != view.Applied && ack.Verdict != view.Duplicate:
			t.member.logger.Warn("the journal sees it otherwise", "component", t.term.Component, "session", t.term.Session,
				"kind", data.Kind(), "verdict", ack.Verdict, "reason", ack.Reason)
		}
		if _, ok := data.(*journal.Grant); ok {
			t.term.epoch.settle(ack.Sequence)
		}
	})
	return stored
}
