package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/leadership-journal/journald/projector"
)

const (
	maxBatch      = 1000 // messages, JetStream's limit
	maxBatchBytes = 4 << 20

	// One commit is under way at a time, since the journal's own appends need the disk more. Another one begins beside
	// it only when it has hung for so long.
	maxSenders = 2
	stuck      = 250 * time.Millisecond

	// A commit of several keys is followed by a rest of so many times what it took, but not longer than longestRest.
	// What is written to the bucket follows the journal, on the same disk: under load it is written together, a little
	// later, so that the journal's appends are not held up by it. A lone write is not followed by any.
	restFactor  = 4
	longestRest = 100 * time.Millisecond
)

var errClosed = errors.New("the bucket is closed")

// write is one message on its way. A sender owns it between take and done.
type write struct {
	ctx      context.Context // the caller's: after it has ended nobody waits
	msg      *nats.Msg
	revision uint64
	err      error
	done     chan struct{} // closed when revision or err is final
}

// committer writes what comes at one time in one commit.
type committer struct {
	js     jetstream.JetStream
	atomic bool // batches are allowed
	logger *slog.Logger

	mu      *sync.Mutex
	waiting []*write
	places  [maxSenders]sender
	closed  bool
	senders *sync.WaitGroup
}

// sender is one place of those who send.
type sender struct {
	taken bool
	since time.Time // when its commit under way began; zero between two
}

func newCommitter(js jetstream.JetStream, atomic bool, logger *slog.Logger) committer {
	return committer{js: js, atomic: atomic, logger: logger, mu: &sync.Mutex{}, senders: &sync.WaitGroup{}}
}

// put stores a message and returns its sequence once it is on disk. An error that wraps none of the projector's means
// that it was not stored.
func (c *committer) put(ctx context.Context, msg *nats.Msg) (uint64, error) {
	w := &write{ctx: ctx, msg: msg, done: make(chan struct{})}
	if err := c.add(w); err != nil {
		return 0, err
	}
	hung := time.NewTimer(stuck)
	defer hung.Stop()
	for {
		select {
		case <-w.done:
			return w.revision, w.err
		case <-hung.C:
			c.relieve()
			hung.Reset(stuck)
		case <-ctx.Done():
			if c.withdraw(w) {
				return 0, fmt.Errorf("nothing was sent: %w", context.Cause(ctx))
			}
			return 0, fmt.Errorf("%w: %w", projector.ErrUnknownOutcome, context.Cause(ctx))
		}
	}
}

// add queues a write, and has it sent.
func (c *committer) add(w *write) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	c.waiting = append(c.waiting, w)
	c.begin()
	return nil
}

// relieve sends what waits behind a commit that hangs.
func (c *committer) relieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		c.begin()
	}
}

// begin starts a sender, unless there is one that does not hang.
func (c *committer) begin() {
	free := -1
	for i := range c.places {
		switch s := &c.places[i]; {
		case !s.taken:
			free = i
		case s.since.IsZero() || time.Since(s.since) < stuck:
			return
		}
	}
	if free >= 0 {
		c.places[free] = sender{taken: true}
		c.senders.Go(func() { c.drain(free) })
	}
}

// withdraw takes a write back, unless it is under way already.
func (c *committer) withdraw(w *write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, w)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	return i >= 0
}

// drain sends until nothing waits.
func (c *committer) drain(place int) {
	for {
		batch := c.take(place)
		if batch == nil {
			return
		}
		began := time.Now()
		c.send(batch)
		c.sent(place)
		for _, w := range batch {
			close(w.done)
		}
		if len(batch) > 1 {
			time.Sleep(min(restFactor*time.Since(began), longestRest))
		}
	}
}

// sent notes that a commit is not under way any more.
func (c *committer) sent(place int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places[place].since = time.Time{}
}

// take removes the writes of the next commit, which begins.
func (c *committer) take(place int) []*write {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, size := 0, 0
	for n < min(len(c.waiting), maxBatch) && (n == 0 || size+c.waiting[n].msg.Size() <= maxBatchBytes) {
		size += c.waiting[n].msg.Size()
		n++
	}
	if n == 0 {
		c.places[place] = sender{}
		return nil
	}
	c.places[place].since = time.Now()
	batch := slices.Clone(c.waiting[:n])
	c.waiting = slices.Delete(c.waiting, 0, n)
	return batch
}

// send stores the writes, together if the server lets it. A batch that it refuses goes one by one: the refusal may
// concern one of them only, and says not which.
func (c *committer) send(batch []*write) {
	if c.atomic && len(batch) > 1 {
		err := c.publish(batch)
		if err == nil || errors.Is(err, projector.ErrUnknownOutcome) {
			for _, w := range batch {
				w.err = err
			}
			return
		}
		c.logger.Debug("a batch was refused and goes one by one", "writes", len(batch), "error", err)
	}
	for _, w := range batch {
		w.revision, w.err = c.publishOne(w)
	}
}

// publish stores the writes all together, or none.
func (c *committer) publish(batch []*write) error {
	ctx, done, err := c.sending(batch[0])
	if err != nil {
		return err
	}
	defer done()
	messages := make([]*nats.Msg, len(batch))
	for i, w := range batch {
		messages[i] = w.msg
	}
	ack, err := jetstreamext.PublishMsgBatch(ctx, c.js, messages, jetstreamext.BatchFlowControl{})
	if err != nil {
		return classify(because(ctx, err))
	}
	for i, w := range batch {
		w.revision = ack.Sequence - uint64(len(batch)-1-i)
	}
	return nil
}

func (c *committer) publishOne(w *write) (uint64, error) {
	ctx, done, err := c.sending(w)
	if err != nil {
		return 0, err
	}
	defer done()
	for _, h := range []string{jetstreamext.BatchIDHeader, jetstreamext.BatchSeqHeader, jetstreamext.BatchCommitHeader} {
		w.msg.Header.Del(h) // of an attempt in a batch
	}
	w.msg.Reply = ""
	ack, err := c.js.PublishMsg(ctx, w.msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, classify(because(ctx, err))
	}
	return ack.Sequence, nil
}

// sending is not ended by the one caller who gives up: others may wait for the same commit.
func (c *committer) sending(w *write) (ctx context.Context, done func(), err error) {
	return whileConnected(context.WithoutCancel(w.ctx), c.js.Conn())
}

// close refuses new writes and waits for the others.
func (c *committer) close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() { c.senders.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the writes to the bucket %s: %w", Name, ctx.Err())
	}
}
