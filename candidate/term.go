package candidate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// Term is the time in which the candidate leads one component. Its methods may be called by many goroutines.
type Term struct {
	Component string
	Session   string

	member  *member
	ctx     context.Context // ends with the term
	managed bool
	epoch   *epoch
	attempt atomic.Uint64 // of the last confirmation
}

// epoch is known from the beginning where journald elects, else once the grant is stored.
type epoch struct {
	once  sync.Once
	set   chan struct{}
	value atomic.Uint64
}

func newEpoch(value uint64) *epoch {
	e := &epoch{set: make(chan struct{})}
	if value != 0 {
		e.settle(value)
	}
	return e
}

func (e *epoch) settle(value uint64) {
	e.once.Do(func() { e.value.Store(value); close(e.set) })
}

func (e *epoch) known() uint64 { return e.value.Load() }

// Epoch is the term's fencing token: the sequence of its grant in the journal, higher than that of every term before it.
// What a leader writes to can refuse a lower one than it has seen. Where journald elects it is known at once; else Epoch
// waits until the journal has the grant, or the term ends.
func (t *Term) Epoch(ctx context.Context) (uint64, error) {
	select {
	case <-t.epoch.set:
		return t.epoch.known(), nil
	default:
	}
	select {
	case <-t.epoch.set:
		return t.epoch.known(), nil
	case <-t.ctx.Done():
		return 0, fmt.Errorf("the epoch of %s: %w", t.Component, context.Cause(t.ctx))
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the epoch of %s: %w", t.Component, context.Cause(ctx))
	}
}

// Held says whether the candidate leads at this moment, by its own clock. Unlike the context it is right at once after the
// process, or its machine, stood still for a while. It says nothing of the next moment.
func (t *Term) Held() bool {
	return t.ctx.Err() == nil && (!t.managed || t.member.lease.covers(t))
}

// Ready tells the journal whether the leader's work runs: load balancers go by it. It returns when that is stored, or with
// the cause of ctx or of the term's end.
func (t *Term) Ready(ctx context.Context, ready bool, reason string) error {
	_, err := t.tell(ctx, &journal.Ready{Session: t.Session, Ready: ready, Reason: reason})
	return err
}

// Confirm says where the leader can be reached from here on, in place of the configured address. It returns when the
// journal has taken it; the targets follow.
func (t *Term) Confirm(ctx context.Context, address string, properties map[string]string) error {
	ack, err := t.tell(ctx, t.confirmation(address, properties))
	if err != nil {
		return err
	}
	return taken(ack)
}

func (t *Term) confirmation(address string, properties map[string]string) *journal.Confirm {
	return &journal.Confirm{
		Session: t.Session, Candidate: t.member.cfg.Name, Address: address, Properties: properties, Attempt: t.attempt.Add(1),
	}
}

// taken is nil where a confirmation was taken.
func taken(ack client.Ack) error {
	switch ack.Verdict {
	case view.Applied, view.Duplicate:
		return nil
	case view.Stale, view.UnknownSession:
		return fmt.Errorf("the confirmation was %s: %w", ack.Verdict, ErrTermOver)
	}
	return fmt.Errorf("the confirmation was %s: %s", ack.Verdict, ack.Reason)
}

// tell stores something about the term while it lasts.
func (t *Term) tell(ctx context.Context, data journal.Data) (client.Ack, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })()
	return t.member.publish(ctx, t.Component, data)
}
