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
	clockSkew   = 30 * time.Second // between servers that led the stream one after the other
	locateBatch = 1000
)

// locate finds which events of a caller's own batch are stored already, under which sequence, so that the others can be
// stored all or none. It goes through the records of the server's memory of ids. Any replica may answer: what
// it shows is stored, and what it doesn't show yet is refused again.
func (l *Log) locate(r *request) error {
	wanted := map[string]*item{}
	for _, it := range r.pending() {
		wanted[it.id] = it
	}
	ctx, cancel := context.WithCancel(l.lifetime)
	defer cancel()
	info, err := l.Info(ctx)
	if err != nil {
		return err
	}
	start := info.LastTime.Add(-window - clockSkew)
	cons, err := l.bulkJS.CreateConsumer(ctx, Name, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &start, HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerIdle,
	})
	if err != nil {
		return fmt.Errorf("look for stored ids: %w", err)
	}
	defer l.dropConsumer(ctx, cons.CachedInfo().Name)
	for len(wanted) > 0 && r.ctx.Err() == nil {
		more, err := locateSome(cons, wanted)
		if err != nil {
			return fmt.Errorf("look for stored ids: %w", err)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// locateSome goes through the next records and says whether there may be more.
func locateSome(cons jetstream.Consumer, wanted map[string]*item) (bool, error) {
	batch, err := cons.FetchNoWait(locateBatch)
	if err != nil {
		return false, err
	}
	n := 0
	for m := range batch.Messages() {
		n++
		it, ok := wanted[m.Headers().Get(jetstream.MsgIDHeader)]
		if !ok {
			continue
		}
		meta, err := m.Metadata()
		if err != nil {
			return false, errors.Join(err, batch.Error())
		}
		it.ack = journal.Ack{Sequence: meta.Sequence.Stream, Duplicate: true}
		delete(wanted, it.id)
	}
	return n > 0, batch.Error()
}
