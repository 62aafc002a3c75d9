package alive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	consumerIdle = 30 * time.Second       // after which the server drops a consumer that nobody listens to
	heartbeat    = 500 * time.Millisecond // of the server, while there is nothing to send
	idleCheck    = 2 * time.Second        // without a change, after which heartbeats and the leader are looked at
	breath       = 50 * time.Millisecond  // between two times that changes are told
	longestPause = 2 * time.Second        // before the watch begins anew
)

// Change is what a key was seen to show. Received is when, by this process's monotonic clock.
type Change struct {
	Key
	Entry
	Received time.Time
}

// Listener is told what the keys show. Its methods are called one after the other.
type Listener interface {
	// Began says that the keys are watched from here on, and that Changed will tell what each shows, beginning with what
	// it shows now. Whatever was told before may be wrong: the watch was interrupted, or the bucket lost.
	Began()

	// Changed tells what keys show, in order, many at a time. Of several changes of a key one may be told, the newest.
	Changed(changes []Change)

	// Lost says that changes are missed from here on, until Began is called again. It is noticed within seconds.
	Lost()
}

// Follow tells what all keys show, until ctx ends, and returns its cause. A watch that breaks, that falls silent or that
// is behind the bucket's leader begins anew; a bucket that is lost is made. Deletions are not told.
func (b *Bucket) Follow(ctx context.Context, to Listener) error {
	for attempt := 0; ; attempt++ {
		began := time.Now()
		err := b.watch(ctx, to)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(began) > longestPause {
			attempt = 0
		}
		b.opts.Logger.WarnContext(ctx, "the watch of liveness keys begins anew", "error", err)
		pause(ctx, attempt)
	}
}

// pause waits ever longer, and at times a little longer than others do.
func pause(ctx context.Context, attempt int) {
	wait := min(50*time.Millisecond<<min(attempt, 10), longestPause)
	rest(ctx, wait/2+rand.N(wait/2)) //nolint:gosec // spreads load, nothing else
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

var (
	errDisconnected = errors.New("the connection to NATS broke")
	errSilent       = errors.New("the server sends neither changes nor heartbeats")
	errDoubted      = errors.New("what was told of is gone")
)

// watch follows through one consumer of the server, and returns why that has come to an end.
func (b *Bucket) watch(ctx context.Context, to Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer whenDisconnected(b.js.Conn(), cancel)()
	if !b.js.Conn().IsConnected() {
		return errUnconnected
	}
	stream, err := b.reach(ctx)
	if err != nil {
		return err
	}
	r := newReader(cancel)
	inbox, end, err := r.subscribe(b.js.Conn())
	if err != nil {
		return err
	}
	defer end()
	name, err := b.consumer(ctx, inbox)
	if err != nil {
		return err
	}
	defer b.drop(ctx, name)
	to.Began()
	defer to.Lost()
	return b.tell(ctx, to, r, stream)
}

// whenDisconnected ends something when the connection breaks. Its end waits for what it started.
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

func (b *Bucket) reach(ctx context.Context) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return b.ensure(ctx)
}

// consumer has the server send what each key shows and what changes after.
func (b *Bucket) consumer(ctx context.Context, inbox string) (name string, err error) {
	once, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c, err := b.js.CreatePushConsumer(once, streamName, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: subjectPrefix + ">", AckPolicy: jetstream.AckNonePolicy,
		DeliverSubject: inbox, FlowControl: true, IdleHeartbeat: heartbeat,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerIdle,
	})
	if err != nil {
		return "", fmt.Errorf("watch the key-value bucket %s: %w", Name, err)
	}
	return c.CachedInfo().Name, nil
}

// drop removes a consumer, which goes away by itself after a while should this fail.
func (b *Bucket) drop(ctx context.Context, name string) {
	if !b.js.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if err := b.js.DeleteConsumer(ctx, streamName, name); err != nil {
		b.opts.Logger.DebugContext(ctx, "consumer left to expire", "error", err)
	}
}

// tell hands changes on until the watch can't be relied on any more.
func (b *Bucket) tell(ctx context.Context, to Listener, r *reader, stream jetstream.Stream) error {
	select {
	case <-b.doubted: // from before
	default:
	}
	check := time.NewTicker(idleCheck)
	defer check.Stop()
	c := checker{reader: r, stream: stream}
	for {
		select {
		case <-r.some:
			to.Changed(r.take())
			rest(ctx, breath) // what comes meanwhile is told together
		case <-check.C:
			if err := c.check(ctx); err != nil {
				return err
			}
		case <-b.doubted:
			return errDoubted
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// checker finds out whether a watch that tells nothing has nothing to tell.
type checker struct {
	reader   *reader
	stream   jetstream.Stream
	beats    uint64 // messages that had come by the last check
	revision uint64 // newest that had come by then
	due      uint64 // newest that the leader had by then, which must have come
}

// check asks the bucket's leader for the newest key, where nothing has come since the last check.
func (c *checker) check(ctx context.Context) error {
	beats, revision := c.reader.seen()
	idle, silent := revision == c.revision, beats == c.beats
	c.beats, c.revision = beats, revision
	switch {
	case silent:
		return errSilent
	case !idle:
		c.due = 0
		return nil
	case revision < c.due:
		return fmt.Errorf("revision %d does not come, which the bucket's leader has", c.due)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := c.stream.GetLastMsgForSubject(ctx, subjectPrefix+">")
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		c.due = 0
	case err != nil:
		return fmt.Errorf("ask the bucket's leader for the newest key: %w", err)
	default:
		c.due = m.Sequence
	}
	return nil
}
