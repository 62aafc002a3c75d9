package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
)

// Of the many who may follow a group each costs the servers little.
const (
	groupBeat  = time.Second             // of the server, while there is nothing to send
	groupCheck = 2500 * time.Millisecond // after which heartbeats are looked at
	groupAsk   = 20 * time.Second        // without a record, after which the leader is asked
)

// FollowGroup hands every record to fn that what holds in a group follows from: the group's own, and the takeovers of
// projectors; first what is stored and then what comes, in order, until ctx ends or fn fails. current says that everything
// that was acknowledged before fn was called first has been handed over; fn is called without records where there is
// nothing else to say it with. While the server can't be reached it waits and goes on after the record that it handed over
// last.
//
// Nothing is left out on the way: the server numbers what it sends. Whether a server has lost a record shows in [Log.Follow]
// only.
func (l *Log) FollowGroup(ctx context.Context, group string, fn func(records []journal.Record, current bool) error) error {
	f := &groupFollower{log: l, fn: fn, subjects: []string{journal.Subjects(group), journal.Subject("_", "", "takeover")}}
	return l.persevere(ctx, func() uint64 { return f.last }, f.session)
}

// groupFollower is one call of FollowGroup. All of its fields belong to that call's goroutine.
type groupFollower struct {
	log      *Log
	fn       func([]journal.Record, bool) error
	subjects []string
	last     uint64 // sequence that was handed over last
	current  bool
}

// session follows through one consumer of the server.
func (f *groupFollower) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(f.log.lifetime, func() { cancel(errClosed) })
	defer stop()
	if conn := f.log.bulkJS.Conn(); conn.IsClosed() {
		return &finalError{fmt.Errorf("the connection to NATS is closed for good: %w", cmp.Or(conn.LastError(), nats.ErrConnectionClosed))}
	}
	defer whenDisconnected(f.log.bulkJS.Conn(), cancel)()
	stored, err := f.stored(ctx)
	if err != nil {
		return err
	}
	r := &reader{ctx: ctx, fail: cancel, batches: make(chan []journal.Record, 2), filtered: true}
	inbox, end, err := r.subscribe(f.log.bulkJS.Conn())
	if err != nil {
		return fmt.Errorf("follow the group: %w", err)
	}
	defer end()
	defer cancel(nil)
	name, err := f.log.consumer(ctx, inbox, f.last+1, groupBeat, f.subjects...)
	if err != nil {
		return err
	}
	defer f.log.dropConsumer(ctx, name)
	return f.deliver(ctx, r, stored)
}

// stored is the newest of the records. A journal that has lost what was handed over is a hole; a leader that was just elected
// may need a while to know of it.
func (f *groupFollower) stored(ctx context.Context) (uint64, error) {
	deadline := time.Now().Add(patience)
	for attempt := 0; ; attempt++ {
		newest, err := f.newest(ctx)
		switch {
		case err != nil, newest >= f.last:
			return newest, err
		case time.Now().After(deadline):
			return 0, &finalError{holeError(newest+1, f.last, newest)}
		}
		if err := pause(ctx, attempt); err != nil {
			return 0, err
		}
	}
}

var errDisconnected = errors.New("the connection to NATS broke")

// whenDisconnected ends something when a connection breaks. Its end waits for what it started.
func whenDisconnected(conn *nats.Conn, end context.CancelCauseFunc) func() {
	broke := conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, did := <-broke; did {
			end(errDisconnected)
		}
	}()
	return func() {
		conn.RemoveStatusListener(broke) // closes it
		<-ended
	}
}

// newest is the newest of the records, as the stream's leader knows it; 0: there is none.
func (f *groupFollower) newest(ctx context.Context) (newest uint64, err error) {
	for _, subject := range f.subjects {
		err := f.log.persist(ctx, "ask the stream's leader", func(ctx context.Context) error {
			m, err := f.log.stream.GetLastMsgForSubject(ctx, subject)
			if err == nil {
				newest = max(newest, m.Sequence)
			}
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return nil
			}
			return err
		})
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return 0, &finalError{goneError(err)}
		}
		if err != nil {
			return 0, err
		}
	}
	return newest, nil
}

// deliver hands batches to fn until the server can't be relied on any more. What was stored when the session began has to
// come before fn is told that it is current.
func (f *groupFollower) deliver(ctx context.Context, r *reader, stored uint64) error {
	if f.last >= stored {
		if err := f.hand(nil, stored); err != nil {
			return err
		}
	}
	check := time.NewTicker(groupCheck)
	defer check.Stop()
	w := &watchdog{asked: time.Now()}
	for {
		select {
		case batch := <-r.batches:
			if ctx.Err() != nil {
				return context.Cause(ctx) // one before it may have been dropped
			}
			if err := f.hand(batch, stored); err != nil {
				return err
			}
		case <-check.C:
			if err := f.check(ctx, w, r); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *groupFollower) hand(batch []journal.Record, stored uint64) error {
	if len(batch) > 0 {
		f.last = batch[len(batch)-1].Sequence
	}
	was := f.current
	f.current = was || f.last >= stored
	if len(batch) == 0 && was {
		return nil
	}
	if err := f.fn(batch, f.current); err != nil {
		return &finalError{err}
	}
	return nil
}

// watchdog is what a session has seen by its last check.
type watchdog struct {
	beats uint64
	last  uint64
	due   uint64 // must have come by the next check
	asked time.Time
}

// check finds out whether a server that sends nothing has nothing to send.
func (f *groupFollower) check(ctx context.Context, w *watchdog, r *reader) (err error) {
	beats := r.beats.Load()
	silent, idle := beats == w.beats, f.last == w.last
	w.beats, w.last = beats, f.last
	switch {
	case len(r.batches) > 0 || !idle:
		w.due, w.asked = 0, time.Now()
	case silent:
		return errSilent
	case w.due > f.last:
		return fmt.Errorf("record %d does not come, which the stream's leader has", w.due)
	case time.Since(w.asked) > groupAsk+rand.N(groupAsk/4): //nolint:gosec // spreads load, nothing else
		w.asked = time.Now()
		w.due, err = f.newest(ctx)
	}
	return err
}
