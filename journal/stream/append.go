package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
)

const (
	maxBatch      = 1000     // messages, JetStream's limit
	maxBatchBytes = 16 << 20 // of one caller's events, far below what a server queues
	gatherBytes   = 4 << 20  // of several callers' events together
)

var errClosed = errors.New("the journal is closed")

// item is one event on its way.
type item struct {
	id  string // what JetStream knows a repeated event by
	msg *nats.Msg
	ack journal.Ack // final when its sequence is set
}

// request is what one caller wants stored, all of it or nothing. A sender owns it between take and finish.
type request struct {
	ctx     context.Context // the caller's: after it has ended nobody waits for the outcome
	items   []*item
	answers []answer // for each event
	size    int      // bytes
	floor   uint64   // what is stored at or below it was there before the first attempt
	unknown bool     // an attempt was made whose outcome is not known
	err     error
	done    chan struct{} // closed when the acks or err are final
}

// answer says which item an event became.
type answer struct {
	item     int
	repeated bool // an earlier event of the same call has its id
}

// Append implements [journal.Log]. A lone call goes to the server at once; calls that come while others are under
// way share the next commit. At most 1000 events, and 16 MiB, are stored by one call; more is [journal.ErrInvalid].
//
// Where some events of a call were stored before, they are acknowledged as duplicates and the others are stored, all or
// none. After ctx has ended the events may still be stored.
func (l *Log) Append(ctx context.Context, events ...journal.Event) ([]journal.Ack, error) {
	if len(events) == 0 {
		return nil, nil
	}
	r, err := newRequest(ctx, events)
	if err == nil {
		err = l.queue.add(r, l.send)
	}
	if err != nil {
		return nil, fmt.Errorf("append to the journal: %w", err)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if l.queue.withdraw(r) {
			return nil, fmt.Errorf("append to the journal, nothing was sent: %w", context.Cause(ctx))
		}
		return nil, fmt.Errorf("append to the journal, outcome unknown: %w", context.Cause(ctx))
	}
	if r.err != nil {
		return nil, fmt.Errorf("append to the journal: %w", r.err)
	}
	return r.acks(), nil
}

// newRequest encodes the events. Those that repeat an id of the same call share one item.
func newRequest(ctx context.Context, events []journal.Event) (*request, error) {
	if len(events) > maxBatch {
		return nil, fmt.Errorf("%w: %d events at once; at most %d are stored together", journal.ErrInvalid, len(events), maxBatch)
	}
	r := &request{ctx: ctx, items: make([]*item, 0, len(events)), done: make(chan struct{})}
	places := make(map[string]int, len(events))
	for i := range events {
		it, err := newItem(&events[i])
		if err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
		place, repeated := places[it.id]
		if !repeated {
			place = len(r.items)
			places[it.id] = place
			r.items = append(r.items, it)
			r.size += it.msg.Size()
		}
		r.answers = append(r.answers, answer{place, repeated})
	}
	if r.size > maxBatchBytes {
		return nil, fmt.Errorf("%w: %d bytes at once; at most %d are stored together", journal.ErrInvalid, r.size, maxBatchBytes)
	}
	return r, nil
}

func newItem(e *journal.Event) (*item, error) {
	data, err := e.Encode()
	if err != nil {
		return nil, err
	}
	if len(data) > journal.MaxSize {
		return nil, &journal.FieldError{Field: "event", Problem: fmt.Sprintf("has %d bytes; at most %d are allowed", len(data), journal.MaxSize)}
	}
	id := headerSafe(e.MessageID())
	msg := &nats.Msg{Subject: e.Subject(), Data: data, Header: nats.Header{jetstream.MsgIDHeader: {id}}}
	return &item{id: id, msg: msg}, nil
}

// headerSafe escapes what a header line would change (spaces at its ends, line breaks), so that two ids are never
// taken for one.
func headerSafe(id string) string {
	unsafe := func(c byte) bool { return c <= ' ' || c == 0x7f || c == '%' }
	for i := range len(id) {
		if !unsafe(id[i]) {
			continue
		}
		var b strings.Builder
		for j := range len(id) {
			if unsafe(id[j]) {
				fmt.Fprintf(&b, "%%%02X", id[j])
			} else {
				b.WriteByte(id[j])
			}
		}
		return b.String()
	}
	return id
}

// acks are the answers for the caller's events, in their order.
func (r *request) acks() []journal.Ack {
	acks := make([]journal.Ack, len(r.answers))
	for i, a := range r.answers {
		acks[i] = r.items[a.item].ack
		acks[i].Duplicate = acks[i].Duplicate || a.repeated
	}
	return acks
}

// pending are the items that are not yet known to be stored.
func (r *request) pending() []*item {
	if len(r.items) == 1 {
		if r.items[0].ack.Sequence != 0 {
			return nil
		}
		return r.items
	}
	var items []*item
	for _, it := range r.items {
		if it.ack.Sequence == 0 {
			items = append(items, it)
		}
	}
	return items
}

// settled says that nothing is left to be done for the request.
func (r *request) settled() bool { return r.err != nil || len(r.pending()) == 0 }

// queue holds the requests that wait while a commit is under way. There is one at a time: the server syncs them one after
// the other, and what comes meanwhile fills the next (measured: two at once make smaller batches and are slower).
type queue struct {
	mu      sync.Mutex
	waiting []*request
	ids     map[string]struct{} // of the commit that is being gathered
	recent  recent
	busy    bool // there is a sender
	closed  bool
	sender  sync.WaitGroup
}

func newQueue() queue { return queue{ids: map[string]struct{}{}, recent: newRecent()} }

// add queues a request, and starts the sender if it doesn't run.
func (q *queue) add(r *request, send func([]*request)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return errClosed
	}
	q.waiting = append(q.waiting, r)
	if !q.busy {
		q.busy = true
		q.sender.Go(func() { q.drain(send) })
	}
	return nil
}

// withdraw takes a request back, unless it is under way already.
func (q *queue) withdraw(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// drain sends until nothing is left.
func (q *queue) drain(send func([]*request)) {
	for {
		batch := q.take()
		if len(batch) == 0 {
			return
		}
		send(batch)
		q.finish(batch)
		runtime.Gosched() // the callers that were woken may have more for the next commit
	}
}

// take removes the requests of the next commit, having answered what is known to be stored. One that repeats an id of
// the commit waits until that is stored.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recent.forget()
	clear(q.ids)
	batch := make([]*request, 0, min(len(q.waiting), maxBatch))
	rest := q.waiting[:0]
	size := 0
	for _, r := range q.waiting {
		switch {
		case q.answer(r):
		case len(batch) > 0 && (len(q.ids)+len(r.items) > maxBatch || size+r.size > gatherBytes), q.repeats(r):
			rest = append(rest, r)
		default:
			for _, it := range r.items {
				q.ids[it.id] = struct{}{}
			}
			size += r.size
			batch = append(batch, r)
		}
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
	q.busy = len(batch) > 0
	return batch
}

// answer ends a request that needs no sending: all of it is known, or nobody waits any more.
func (q *queue) answer(r *request) bool {
	if r.err = context.Cause(r.ctx); r.err == nil {
		for _, it := range r.items {
			if sequence, ok := q.recent.find(it.id); ok {
				it.ack = journal.Ack{Sequence: sequence, Duplicate: true}
			}
		}
	}
	if !r.settled() {
		return false
	}
	close(r.done)
	return true
}

// repeats says that an id of the request is in the commit already.
func (q *queue) repeats(r *request) bool {
	for _, it := range r.items {
		if _, ok := q.ids[it.id]; ok {
			return true
		}
	}
	return false
}

// finish remembers what was stored and wakes the callers.
func (q *queue) finish(batch []*request) {
	q.mu.Lock()
	for _, r := range batch {
		for _, it := range r.items {
			if it.ack.Sequence != 0 {
				q.recent.add(it.id, it.ack.Sequence)
			}
		}
	}
	q.mu.Unlock()
	for _, r := range batch {
		close(r.done)
	}
}

// close refuses new requests and waits for the others.
func (q *queue) close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	idle := make(chan struct{})
	go func() { q.sender.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the appends that are under way: %w", ctx.Err())
	}
}
