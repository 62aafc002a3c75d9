package stream

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/leadership-journal/journald/journal"
)

// readBatch is the most records that are handed over at once.
const readBatch = 512

// reader turns what the server sends to one subscription into batches of records. It decodes on the goroutine of
// the subscription, beside the one that reads from the network and the one that takes the batches.
type reader struct {
	ctx     context.Context // after it has ended messages are dropped
	batches chan []journal.Record
	beats   atomic.Uint64 // messages seen, heartbeats included

	conn  *nats.Conn
	sub   *nats.Subscription
	fail  context.CancelCauseFunc // ends ctx
	batch []journal.Record        // of the subscription's goroutine

	filtered  bool   // the server leaves records out, so that only its count of messages shows what is missing
	delivered uint64 // messages of this consumer, where filtered; of the subscription's goroutine
}

// subscribe begins to read what is sent to the inbox that it returns. Its end waits for the last message to be handled;
// the context must have ended before.
func (r *reader) subscribe(conn *nats.Conn) (inbox string, end func(), err error) {
	r.conn = conn
	inbox = conn.NewInbox()
	ready := make(chan struct{})
	ended := make(chan struct{})
	r.sub, err = conn.Subscribe(inbox, func(m *nats.Msg) {
		<-ready
		r.handle(m)
	})
	if err != nil {
		return "", nil, fmt.Errorf("subscribe: %w", err)
	}
	r.sub.SetClosedHandler(func(string) { close(ended) })
	close(ready)
	return inbox, func() {
		if r.sub.Unsubscribe() == nil {
			<-ended
		}
	}, nil
}

// handle takes one message, and passes a batch on when it is full or nothing else is at hand.
func (r *reader) handle(m *nats.Msg) {
	r.beats.Add(1)
	waiting := r.waiting()
	if len(m.Data) == 0 && m.Header.Get("Status") == "100" {
		r.answer(m)
		r.account(m.Header.Get("Nats-Last-Consumer"))
	} else if sequence, count, at, ok := position(m.Reply); ok && r.next(count) {
		if r.batch == nil {
			r.batch = make([]journal.Record, 0, min(waiting+1, readBatch))
		}
		r.batch = append(r.batch, journal.NewRecord(sequence, at, m.Subject, m.Data))
	}
	if len(r.batch) == 0 || len(r.batch) < readBatch && waiting > 0 {
		return
	}
	select {
	case r.batches <- r.batch:
	case <-r.ctx.Done():
	}
	r.batch = nil
}

// next counts a message, and says whether it follows on the one before. After one that does not nothing is passed on.
func (r *reader) next(count uint64) bool {
	if !r.filtered {
		return true
	}
	if count != r.delivered+1 {
		r.fail(fmt.Errorf("message %d of the consumer came after %d", count, r.delivered))
		return false
	}
	r.delivered = count
	return true
}

// account compares with the count that a heartbeat names, if it does.
func (r *reader) account(last string) {
	if count, _, ok := number(last); ok && r.filtered && count > r.delivered {
		r.fail(fmt.Errorf("message %d of the consumer did not come, %d did", count, r.delivered))
	}
}

// waiting is how many messages are at hand beside the one that is being handled.
func (r *reader) waiting() int {
	n, _, err := r.sub.Pending()
	if err != nil {
		return 0 // the subscription has ended
	}
	return n - 1
}

// answer tells the server that what it sent before has been taken, so that it sends more.
func (r *reader) answer(m *nats.Msg) {
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

// position reads the sequence of a message, its count among those of its consumer and its time from the subject that
// JetStream wants it acknowledged on:
// $JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<consumer's sequence>.<ns>.<pending>, where newer servers put
// domain and account before the stream, and a word after all (ADR-15).
func position(reply string) (sequence, count uint64, at time.Time, ok bool) {
	rest, ok := strings.CutPrefix(reply, "$JS.ACK.")
	if !ok {
		return 0, 0, time.Time{}, false
	}
	skip := 3
	if strings.Count(rest, ".") > 6 {
		skip += 2
	}
	for range skip {
		if _, rest, ok = strings.Cut(rest, "."); !ok {
			return 0, 0, time.Time{}, false
		}
	}
	sequence, rest, ok = number(rest)
	if !ok || sequence == 0 {
		return 0, 0, time.Time{}, false
	}
	if count, rest, ok = number(rest); !ok {
		return 0, 0, time.Time{}, false
	}
	ns, _, ok := number(rest)
	if !ok || ns > 1<<63-1 {
		return 0, 0, time.Time{}, false
	}
	return sequence, count, time.Unix(0, int64(ns)).UTC(), true //nolint:gosec // bounded above
}

// number reads digits up to a full stop, and what is after it.
func number(text string) (n uint64, rest string, ok bool) {
	for i := range len(text) {
		c := text[i]
		switch {
		case c == '.':
			return n, text[i+1:], i > 0
		case c < '0' || c > '9' || i > 19:
			return 0, "", false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, "", text != ""
}
