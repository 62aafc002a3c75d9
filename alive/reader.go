package alive

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/leadership-journal/journald/journal"
)

// reader gathers what the server sends to one subscription.
type reader struct {
	conn *nats.Conn
	fail context.CancelCauseFunc
	some chan struct{} // there is something to take

	mu       sync.Mutex
	pending  []Change
	beats    uint64 // messages, heartbeats included
	order    uint64 // of the newest change, among those of this consumer
	revision uint64 // of the newest change
}

func newReader(fail context.CancelCauseFunc) *reader {
	return &reader{fail: fail, some: make(chan struct{}, 1)}
}

// subscribe begins to read what is sent to the inbox that it returns. Its end waits for the last message to be handled.
func (r *reader) subscribe(conn *nats.Conn) (inbox string, end func(), err error) {
	r.conn = conn
	inbox = conn.NewInbox()
	sub, err := conn.Subscribe(inbox, r.handle)
	if err != nil {
		return "", nil, fmt.Errorf("subscribe: %w", err)
	}
	ended := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(ended) })
	return inbox, func() {
		if sub.Unsubscribe() == nil {
			<-ended
		}
	}, nil
}

// handle takes one message.
func (r *reader) handle(m *nats.Msg) {
	received := time.Now()
	if len(m.Data) == 0 && m.Header.Get("Status") == "100" {
		r.answer(m)
		return
	}
	meta, err := m.Metadata()
	if err != nil {
		r.fail(fmt.Errorf("a message that is none of the bucket's: %w", err))
		return
	}
	group, candidate, ok := journal.ParseKey(strings.TrimPrefix(m.Subject, subjectPrefix))
	ok = ok && !deleted(m.Header)
	c := Change{Key{group, candidate}, Entry{decode(m.Data), meta.Sequence.Stream}, received}
	if err := r.add(c, ok, meta.Sequence.Consumer); err != nil {
		r.fail(err)
	}
}

// add takes a change that follows on the one before. What is no candidate's key only counts.
func (r *reader) add(c Change, ok bool, order uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if order != r.order+1 {
		return fmt.Errorf("change %d came after %d", order, r.order)
	}
	if c.Revision <= r.revision {
		return fmt.Errorf("revision %d came after %d: the bucket was lost", c.Revision, r.revision)
	}
	r.beats++
	r.order, r.revision = order, c.Revision
	if !ok {
		return nil
	}
	r.pending = append(r.pending, c)
	select {
	case r.some <- struct{}{}:
	default:
	}
	return nil
}

// take is what has come since it was called last.
func (r *reader) take() []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.pending
	r.pending = nil
	return taken
}

// seen is how many messages have come, and the newest revision.
func (r *reader) seen() (beats, revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beats, r.revision
}

// answer tells the server that what it sent before has been taken, so that it sends more.
func (r *reader) answer(m *nats.Msg) {
	r.mu.Lock()
	r.beats++
	r.mu.Unlock()
	reply := m.Reply
	if reply == "" {
		reply = m.Header.Get("Nats-Consumer-Stalled") // a heartbeat of a consumer that waits for an answer
	}
	if reply == "" {
		return
	}
	if err := r.conn.Publish(reply, nil); err != nil {
		r.fail(fmt.Errorf("answer the server's flow control: %w", err))
	}
}
