package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
)

const (
	consumerIdle = 30 * time.Second       // after which the server drops a consumer that nobody listens to
	heartbeat    = 500 * time.Millisecond // of the server, while there is nothing to send
	idleCheck    = 2 * time.Second        // without a record, after which heartbeats and the leader are looked at
	maxSkips     = 3                      // times that a replica may leave out a record that the leader has
)

// Follow implements [journal.Log]. From 0 or 1 it begins where the journal does. While the server can't be reached it
// waits and goes on after the record that it handed over last.
func (l *Log) Follow(ctx context.Context, from uint64, fn func([]journal.Record) error) error {
	next, err := l.begin(ctx, from)
	if err != nil {
		return orContext(ctx, err)
	}
	f := &follower{log: l, next: next, fn: fn}
	return l.persevere(ctx, func() uint64 { return f.next }, f.session)
}

// persevere has one session come after the other, until ctx ends or it can't be gone on.
func (l *Log) persevere(ctx context.Context, place func() uint64, session func(context.Context) error) error {
	for attempt := 0; ; attempt++ {
		before := place()
		err := session(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if final, ok := errors.AsType[*finalError](err); ok {
			return final.err
		}
		if l.lifetime.Err() != nil {
			return fmt.Errorf("follow the journal: %w", errClosed)
		}
		if place() != before {
			attempt = 0
		}
		l.logger.Warn("following the journal starts anew", "from", place(), "error", err)
		if pause(ctx, attempt) != nil {
			return ctx.Err()
		}
	}
}

// orContext is the error of ctx where that has ended: what failed did so because of it.
func orContext(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// begin is the first sequence to read. Sequences that the journal has lost, at its start or its end, are a hole.
func (l *Log) begin(ctx context.Context, from uint64) (uint64, error) {
	deadline := time.Now().Add(patience)
	for attempt := 0; ; attempt++ {
		info, err := l.Info(ctx)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return 0, goneError(err)
		case err != nil:
			return 0, err
		case from <= 1:
			return max(info.First, 1), nil
		case from < info.First:
			return 0, holeError(from, info.First-1, info.Last)
		case from <= info.Last+1:
			return from, nil
		case time.Now().After(deadline):
			return 0, holeError(info.Last+1, from-1, info.Last)
		}
		if err := pause(ctx, attempt); err != nil {
			return 0, err
		}
	}
}

func goneError(err error) error {
	return fmt.Errorf("%w: stream %s is gone as a whole; restore a backup: %w", journal.ErrHole, Name, err)
}

// follower is one call of Follow. All of its fields belong to that call's goroutine.
type follower struct {
	log   *Log
	fn    func([]journal.Record) error
	next  uint64 // the sequence to hand over next
	skips int    // how often a replica has left out next
}

// finalError ends following; any other error only ends a session.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

// session follows through one consumer of the server. Reading, decoding and fn run side by side.
func (f *follower) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(f.log.lifetime, func() { cancel(errClosed) })
	defer stop()
	r := &reader{ctx: ctx, fail: cancel, batches: make(chan []journal.Record, 2)}
	inbox, end, err := r.subscribe(f.log.bulkJS.Conn())
	if err != nil {
		return fmt.Errorf("follow the journal: %w", err)
	}
	defer end()
	defer cancel(nil)
	name, err := f.log.consumer(ctx, inbox, f.next, heartbeat)
	if err != nil {
		return err
	}
	defer f.log.dropConsumer(ctx, name)
	return f.deliver(ctx, r)
}

// consumer makes the server send what it has on some subjects, none: on all, from a sequence on. It stops by itself when
// nobody listens.
func (l *Log) consumer(ctx context.Context, inbox string, from uint64, beat time.Duration, filters ...string) (name string, err error) {
	once, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	cons, err := l.bulkJS.CreatePushConsumer(once, Name, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, AckPolicy: jetstream.AckNonePolicy,
		FilterSubjects: filters, DeliverSubject: inbox, FlowControl: true, IdleHeartbeat: beat,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerIdle,
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if _, err := l.Info(ctx); errors.Is(err, jetstream.ErrStreamNotFound) {
			return "", &finalError{goneError(err)}
		}
	}
	if err != nil {
		return "", fmt.Errorf("follow the journal: %w", err)
	}
	return cons.CachedInfo().Name, nil
}

// dropConsumer removes a consumer, which goes away by itself after a while should this fail.
func (l *Log) dropConsumer(ctx context.Context, name string) {
	if !l.js.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	if err := l.bulkJS.DeleteConsumer(ctx, Name, name); err != nil {
		l.logger.Debug("consumer left to expire", "error", err)
	}
}

// deliver hands batches to fn while they follow on each other.
func (f *follower) deliver(ctx context.Context, r *reader) error {
	check := time.NewTicker(idleCheck)
	defer check.Stop()
	next, beats := f.next, r.beats.Load()
	for {
		select {
		case batch := <-r.batches:
			if err := f.hand(ctx, batch); err != nil {
				return err
			}
		case <-check.C:
			if len(r.batches) == 0 && f.next == next {
				if err := f.overdue(ctx, r.beats.Load() != beats); err != nil {
					return err
				}
			}
			next, beats = f.next, r.beats.Load()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hand passes on what follows on the last record, and says what is missing before the rest.
func (f *follower) hand(ctx context.Context, batch []journal.Record) error {
	for len(batch) > 0 && batch[0].Sequence < f.next {
		batch = batch[1:] // seen before
	}
	n := 0
	for n < len(batch) && batch[n].Sequence == f.next+uint64(n) {
		n++
	}
	if n > 0 {
		if err := f.fn(batch[:n]); err != nil {
			return &finalError{err}
		}
		f.next, f.skips = f.next+uint64(n), 0
	}
	if n < len(batch) && ctx.Err() == nil {
		return f.gap(ctx, batch[n].Sequence)
	}
	return nil
}

// gap tells a record that is lost from one that was lost on its way here: the stream's leader knows.
func (f *follower) gap(ctx context.Context, got uint64) error {
	info, err := f.log.Info(ctx)
	if err != nil {
		return err
	}
	_, err = f.log.get(ctx, f.next)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return &finalError{holeError(f.next, got-1, info.Last)}
	}
	if err != nil {
		return err
	}
	if f.skips++; f.skips >= maxSkips {
		return &finalError{fmt.Errorf("a replica leaves out records that the leader, %s, has: %w",
			info.Leader, holeError(f.next, got-1, info.Last))}
	}
	return fmt.Errorf("record %d came instead of %d", got, f.next)
}

// overdue is called when no record has come for a while. It asks the leader whether one should have.
func (f *follower) overdue(ctx context.Context, alive bool) error {
	if !alive {
		return errSilent
	}
	info, err := f.log.Info(ctx)
	if err != nil || info.Last < f.next {
		return err
	}
	return f.gap(ctx, info.Last+1)
}

var errSilent = errors.New("the server sends neither records nor heartbeats")
