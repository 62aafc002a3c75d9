package kv

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Push implements [projector.Target]. The document has one entry, of its component.
func (b *Bucket) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	e, ok := doc.Entries[doc.Component]
	if !ok || len(doc.Entries) != 1 {
		return projector.Receipt{}, fmt.Errorf("%w: a key shows one component, %q, and the document has %d",
			projector.ErrPermanent, doc.Component, len(doc.Entries))
	}
	key := journal.Key(doc.Group, doc.Component)
	was, err := b.current(ctx, key, doc.Fresh)
	if err != nil {
		return projector.Receipt{}, err
	}
	want := Leader{Sequence: doc.Sequence, Epoch: e.Epoch, Phase: e.Phase, Leader: e.Leader}
	if was.readable && was.leader.Sequence > want.Sequence {
		return projector.Receipt{}, fmt.Errorf("key %s: %w: %d, not %d", key, projector.ErrSuperseded, was.leader.Sequence, want.Sequence)
	}
	if was.readable && was.leader.equal(want) {
		return projector.Receipt{Revision: was.revision}, nil
	}
	now, err := b.replace(ctx, key, was, want)
	if err != nil {
		return projector.Receipt{}, err
	}
	receipt := projector.Receipt{Revision: now.revision, Wrote: true}
	if !sameContent(was, want) {
		receipt.Changed = []string{doc.Component}
	}
	return receipt, nil
}

// sameContent says whether only the fence differs.
func sameContent(was entry, want Leader) bool {
	was.leader.Sequence = want.Sequence
	return was.readable && was.leader.equal(want)
}

// current is what is known of a key, or what the bucket says.
func (b *Bucket) current(ctx context.Context, key string, fresh bool) (entry, error) {
	b.mu.Lock()
	known, ok := b.keys[key]
	b.mu.Unlock()
	if ok && !fresh {
		return known, nil
	}
	e, err := b.read(ctx, key)
	if err != nil {
		return entry{}, err
	}
	b.remember(key, e)
	return e, nil
}

// replace writes a key on condition that it is as it was.
func (b *Bucket) replace(ctx context.Context, key string, was entry, want Leader) (entry, error) {
	text, err := want.encode()
	if err != nil {
		return entry{}, fmt.Errorf("key %s: %w: %w", key, projector.ErrPermanent, err)
	}
	revision, err := b.commit.put(ctx, &nats.Msg{
		Subject: subjectPrefix + key,
		Data:    text,
		Header:  nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(was.revision, 10)}},
	})
	if err != nil {
		b.forget(key)
		return entry{}, fmt.Errorf("write %s in the bucket %s: %w", key, Name, err)
	}
	now := entry{revision: revision, leader: want, readable: true}
	b.remember(key, now)
	return now, nil
}

func (b *Bucket) remember(key string, e entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys[key] = e
}

func (b *Bucket) forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.keys, key)
}
