package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/leadership-journal/journald/journal"
)

// send stores the requests of one commit. It returns when each is stored or refused, or nobody waits for it.
func (l *Log) send(batch []*request) {
	for floor, i := l.seen.Load(), 0; i < len(batch); i++ {
		batch[i].floor = floor
	}
	var err error
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			l.pause(attempt, len(batch), err)
			if batch = l.open(batch); len(batch) == 0 {
				return
			}
			if err = l.readBack(batch); err != nil {
				continue
			}
		}
		if batch = l.open(batch); len(batch) == 0 {
			return
		}
		if err = l.attempt(batch); err == nil {
			return
		}
	}
}

// pause waits before another attempt, which ends with the log.
func (l *Log) pause(attempt, requests int, err error) {
	if bits.OnesCount(uint(attempt)) == 1 {
		l.logger.Warn("append is tried again", "attempt", attempt+1, "requests", requests, "error", err)
	}
	_ = pause(l.lifetime, attempt) // that the log is closed is seen by open
}

// open leaves those requests for which something is still to be done and somebody waits.
func (l *Log) open(batch []*request) []*request {
	var rest []*request
	for _, r := range batch {
		if !r.settled() {
			if r.err = context.Cause(r.ctx); r.err == nil && l.lifetime.Err() != nil {
				r.err = errClosed
			}
		}
		if !r.settled() {
			rest = append(rest, r)
		}
	}
	return rest
}

// fewRequests are sent faster one after the other than as an atomic batch, on a server of its own: there a batch costs
// 2 to 10 ms whatever its size, for the files that it is staged in, and a sync 0.3 ms. Replicated streams stage in memory.
const fewRequests = 8

// attempt sends the requests once, together. What was gathered from several callers and refused goes one by one, since
// the refusal may concern one of them only. It returns an error where something is left to be done.
func (l *Log) attempt(batch []*request) error {
	if len(batch) == 1 || len(batch) <= fewRequests && l.stream.CachedInfo().Config.Replicas == 1 {
		return l.attemptEach(batch)
	}
	var items []*item
	for _, r := range batch {
		items = append(items, r.pending()...)
	}
	err := l.publish(items)
	switch judge(err) {
	case stored:
		return l.confirm(batch)
	case unknown:
		for _, r := range batch {
			r.unknown = true
		}
		return err
	}
	return l.attemptEach(batch)
}

// attemptEach sends the requests one by one, until one is to be tried again.
func (l *Log) attemptEach(batch []*request) error {
	for _, r := range batch {
		if err := l.attemptOne(r); err != nil {
			return err
		}
	}
	return nil
}

// attemptOne sends one caller's request, all or nothing. A refusal for good becomes the request's own error.
func (l *Log) attemptOne(r *request) error {
	err := l.publish(r.pending())
	switch judge(err) {
	case stored:
		return l.confirm([]*request{r})
	case refused:
		r.err = err
		return nil
	case full:
		r.err = fmt.Errorf("%w: %w", journal.ErrFull, err)
		return nil
	case duplicate:
		return errors.Join(err, l.locate(r))
	case unknown:
		r.unknown = true
	}
	return err
}

// slowest is the rate, in bytes a second, at which a server is given time to take a commit.
const slowest = 4 << 20

// publish sends the items as one commit and waits for it.
func (l *Log) publish(items []*item) error {
	size := 0
	for _, it := range items {
		size += it.msg.Size()
	}
	ctx, cancel := context.WithTimeout(l.lifetime, attemptTimeout+time.Duration(size)*time.Second/slowest)
	defer cancel()
	began := time.Now()
	if len(items) == 1 {
		return l.orDenied(began, items, l.publishOne(ctx, items[0]))
	}
	messages := make([]*nats.Msg, len(items))
	for i, it := range items {
		messages[i] = it.msg
	}
	ack, err := jetstreamext.PublishMsgBatch(ctx, l.js, messages, jetstreamext.BatchFlowControl{})
	if err != nil {
		return l.orDenied(began, items, err)
	}
	for i, it := range items {
		it.ack = journal.Ack{Sequence: ack.Sequence - uint64(len(items)-1-i)}
	}
	return nil
}

// denial is the newest word of the server that something is not allowed. It answers no message: who sent it is left waiting.
type denial struct {
	at  time.Time
	err error
}

// orDenied is why messages were not answered that were sent after a moment: the server's word, where it has spoken since of
// the subject of one.
func (l *Log) orDenied(since time.Time, items []*item, err error) error {
	d := l.denial.Load()
	if err == nil || d == nil || d.at.Before(since) {
		return err
	}
	for _, it := range items {
		if strings.Contains(d.err.Error(), strconv.Quote(it.msg.Subject)) {
			return fmt.Errorf("the NATS user may not do this: %w", d.err)
		}
	}
	return err
}

func (l *Log) publishOne(ctx context.Context, it *item) error {
	for _, h := range []string{jetstreamext.BatchIDHeader, jetstreamext.BatchSeqHeader, jetstreamext.BatchCommitHeader} {
		it.msg.Header.Del(h) // of an attempt in a batch
	}
	ack, err := l.js.PublishMsg(ctx, it.msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		return err
	}
	it.ack = journal.Ack{Sequence: ack.Sequence, Duplicate: ack.Duplicate}
	return nil
}

// confirm accepts the acknowledgements. Where an earlier attempt's outcome was unknown the server's answer is no proof
// of what is stored: the record is read back.
func (l *Log) confirm(batch []*request) error {
	for _, r := range batch {
		for _, it := range r.items {
			if r.unknown && it.ack.Sequence > r.floor {
				if err := l.confirmItem(it); err != nil {
					return err
				}
			}
			l.saw(it.ack.Sequence)
		}
	}
	return nil
}

// confirmItem takes an acknowledgement back that the stream's leader does not bear out.
func (l *Log) confirmItem(it *item) error {
	ctx, cancel := context.WithTimeout(l.lifetime, attemptTimeout)
	defer cancel()
	sequence := it.ack.Sequence
	it.ack = journal.Ack{}
	m, err := l.stream.GetMsg(ctx, sequence)
	if err != nil {
		return fmt.Errorf("read back record %d: %w", sequence, err)
	}
	if got := m.Header.Get(jetstream.MsgIDHeader); got != it.id {
		return fmt.Errorf("record %d was acknowledged for %s, and is %s", sequence, it.id, got)
	}
	it.ack = journal.Ack{Sequence: sequence} // stored by this very append: not a duplicate
	return nil
}

// readBack asks the stream's leader which events of requests with an unknown outcome are stored. It reaches back to
// before the first attempt, further than the server remembers ids.
func (l *Log) readBack(batch []*request) error {
	missing := map[string]map[string]*item{} // by subject and id
	floor := uint64(math.MaxUint64)
	for _, r := range batch {
		if !r.unknown {
			continue
		}
		floor = min(floor, r.floor)
		for _, it := range r.pending() {
			if missing[it.msg.Subject] == nil {
				missing[it.msg.Subject] = map[string]*item{}
			}
			missing[it.msg.Subject][it.id] = it
		}
	}
	for subject, items := range missing {
		if err := l.search(subject, floor, items); err != nil {
			return fmt.Errorf("read back what was stored: %w", err)
		}
	}
	return nil
}

// search goes through the records of a subject after floor, until the items are found or there are no more.
func (l *Log) search(subject string, floor uint64, items map[string]*item) error {
	for len(items) > 0 {
		m, err := l.next(subject, floor+1)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		floor = m.Sequence
		id := m.Header.Get(jetstream.MsgIDHeader)
		if it := items[id]; it != nil {
			it.ack.Sequence = m.Sequence
			l.saw(m.Sequence)
			delete(items, id)
		}
	}
	return nil
}

// next is the first record of a subject at or after a sequence, from the stream's leader.
func (l *Log) next(subject string, from uint64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(l.lifetime, attemptTimeout)
	defer cancel()
	return l.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
}

// outcome is what came of one attempt to store.
type outcome int

const (
	stored    outcome = iota
	refused           // not stored, for good
	full              // not stored: there is no room
	duplicate         // not stored: the server knows one of the ids
	later             // not stored: the server is busy, or elects
	unknown           // stored or not: to be read back before anything else
)

func judge(err error) outcome {
	if err == nil {
		return stored
	}
	code, ok := apiCode(err)
	if !ok {
		if errors.Is(err, nats.ErrBadSubject) || errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrBadHeaderMsg) ||
			errors.Is(err, nats.ErrPermissionViolation) {
			return refused
		}
		return unknown
	}
	switch code {
	case codeDuplicate:
		return duplicate
	case codeAccountFull, codeServerFull, codeStorageFull:
		return full
	case codeStoreFailed:
		if strings.Contains(err.Error(), "maximum bytes exceeded") {
			return full
		}
		return unknown
	case codeIDInProcess, codeTooManyRequests, codeTooManyBatches, codeIncomplete, codeNotAvailable, codeNotLeader:
		return later
	}
	return refused
}
