// Package records reads a part of the journal: what is stored on some subjects, from a place on, in order.
//
// It is for showing what was, not for deciding: a server that has fallen behind may answer.
package records

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
)

// Query says which records are meant.
type Query struct {
	From     uint64    // the first sequence; 0: the oldest
	Since    time.Time // in place of From: the first record of this time or later
	Subjects []string  // with * for any token; none: all
	Page     int       // about how many are wanted
}

// Reader reads the journal's stream.
type Reader struct {
	js     jetstream.JetStream
	stream string
}

// New is a reader of a stream.
func New(js jetstream.JetStream, stream string) *Reader { return &Reader{js, stream} }

// Subject selects the records of a group, a component and a kind, each of them anyone's if empty.
func Subject(group, component, kind string) string {
	tokens := strings.Split(journal.Subject(group, component, kind), ".")
	for i, name := range []string{group, component, kind} {
		if name == "" {
			tokens[i+1] = "*"
		}
	}
	return strings.Join(tokens, ".")
}

const (
	mostAtOnce  = 500
	abandonment = 30 * time.Second // after which the server forgets a reader that is gone
)

// Each hands over what is stored now, until yield says that it has enough.
func (r *Reader) Each(ctx context.Context, q Query, yield func(*journal.Record) bool) error {
	config := jetstream.OrderedConsumerConfig{
		FilterSubjects: q.Subjects, DeliverPolicy: jetstream.DeliverAllPolicy, InactiveThreshold: abandonment,
	}
	switch {
	case !q.Since.IsZero():
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &q.Since
	case q.From > 0:
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, q.From
	}
	consumer, err := r.js.OrderedConsumer(ctx, r.stream, config)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(min(max(q.Page, 10), mostAtOnce)))
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	defer messages.Stop()
	for {
		more, err := next(ctx, messages, yield)
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		if !more {
			return nil
		}
	}
}

func next(ctx context.Context, messages jetstream.MessagesContext, yield func(*journal.Record) bool) (more bool, err error) {
	m, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return false, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return false, err
	}
	record := journal.NewRecord(meta.Sequence.Stream, meta.Timestamp.UTC(), m.Subject(), m.Data())
	return yield(&record) && meta.NumPending > 0, nil
}
