package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Name is the bucket's.
const Name = "leaders"

const (
	streamName    = "KV_" + Name
	subjectPrefix = "$KV." + Name + "."
)

// Options say how the bucket is made where there is none. Logger is required.
type Options struct {
	Replicas int // 0: one
	Logger   *slog.Logger
}

// Bucket shows leaders: a [projector.Target] for every group, one key for each component.
type Bucket struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	commit committer

	mu   sync.Mutex
	keys map[string]entry // as they were read or written last
}

// Open opens the bucket, and creates it where there is none. It refuses one that forgets: in memory, with a maximum
// age, or acknowledged before it is stored.
func Open(ctx context.Context, js jetstream.JetStream, opts Options) (*Bucket, error) {
	if opts.Logger == nil {
		return nil, errors.New("kv: a logger is needed")
	}
	stream, err := open(ctx, js, config(opts))
	if err != nil {
		return nil, fmt.Errorf("open the key-value bucket %s: %w", Name, err)
	}
	b := &Bucket{js: js, stream: stream, keys: map[string]entry{}}
	b.commit = newCommitter(js, stream.CachedInfo().Config.AllowAtomicPublish, opts.Logger)
	return b, nil
}

// Close refuses further writes and waits for those that are under way.
func (b *Bucket) Close(ctx context.Context) error { return b.commit.close(ctx) }

// config is that of a NATS key-value bucket, with atomic batches.
func config(opts Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               streamName,
		Description:        "who leads, as journald's view has it",
		Subjects:           []string{subjectPrefix + ">"},
		Storage:            jetstream.FileStorage,
		Replicas:           max(opts.Replicas, 1),
		MaxMsgsPerSubject:  1,
		MaxMsgs:            -1,
		MaxBytes:           -1,
		MaxMsgSize:         -1,
		MaxConsumers:       -1,
		Discard:            jetstream.DiscardNew,
		Duplicates:         2 * time.Minute,
		AllowRollup:        true,
		DenyDelete:         true,
		AllowDirect:        true,
		AllowAtomicPublish: true,
	}
}

// open makes the stream, or takes the one that is there, having allowed batches on it where the server lets it.
func open(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := js.CreateStream(ctx, want)
	if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return stream, err
	}
	stream, err = js.Stream(ctx, want.Name)
	if err != nil {
		return nil, err
	}
	have := stream.CachedInfo().Config
	if err := check(have); err != nil || have.AllowAtomicPublish {
		return stream, err
	}
	have.AllowAtomicPublish = true
	if _, err := js.UpdateStream(ctx, have); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return stream, nil // it may not be changed: written one by one
	}
	return js.Stream(ctx, want.Name)
}

func check(have jetstream.StreamConfig) error {
	switch {
	case have.Storage != jetstream.FileStorage:
		return errors.New("it is kept in memory; the fence has to outlive the server")
	case have.MaxAge != 0:
		return fmt.Errorf("it forgets keys after %s; the fence has to stay", have.MaxAge)
	case have.MaxMsgsPerSubject < 1:
		return errors.New("it keeps no last value for each key")
	case have.PersistMode == jetstream.AsyncPersistMode:
		return errors.New("it acknowledges writes before they are stored")
	}
	return nil
}

// PerComponent implements [projector.Target]: each component has a key.
func (b *Bucket) PerComponent() bool { return true }

// Watch reports nothing and returns when ctx ends. What stands in the bucket is no concern of the journal: its writes
// leave no records, and so do its observations.
func (b *Bucket) Watch(ctx context.Context, _ func(projector.Observation) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// Get reads who is shown to lead a component, from the bucket's leader. False: the component was never shown.
func (b *Bucket) Get(ctx context.Context, group, component string) (Leader, bool, error) {
	e, err := b.read(ctx, journal.Key(group, component))
	if err != nil {
		return Leader{}, false, err
	}
	return e.leader, e.readable, nil
}

// read asks the stream's leader: a direct get may be answered by a replica that is behind.
func (b *Bucket) read(ctx context.Context, key string) (entry, error) {
	ctx, done, err := whileConnected(ctx, b.js.Conn())
	if err != nil {
		return entry{}, fmt.Errorf("read %s in the bucket %s: %w", key, Name, err)
	}
	defer done()
	m, err := b.stream.GetLastMsgForSubject(ctx, subjectPrefix+key)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, fmt.Errorf("read %s in the bucket %s: %w", key, Name, because(ctx, err))
	}
	e := entry{revision: m.Sequence}
	if operation := m.Header.Get("KV-Operation"); operation == "" || strings.EqualFold(operation, "PUT") {
		e.leader, e.readable = decode(m.Data)
	}
	return e, nil
}
