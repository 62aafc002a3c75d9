package alive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamName    = "KV_" + Name
	subjectPrefix = "$KV." + Name + "."

	keepFor        = time.Hour       // a key that nobody renews
	requestTimeout = 2 * time.Second // one request to the server
)

// Options say how the bucket is made where there is none. Logger is required.
type Options struct {
	Replicas int  // as many as the journal has; 0: one
	Existing bool // it is neither made nor changed: for those who only renew keys, beside a journald that makes it
	Logger   *slog.Logger
}

// Bucket holds the keys. It is safe for concurrent use, and has nothing to close.
type Bucket struct {
	js      jetstream.JetStream
	opts    Options
	making  chan struct{} // held by whoever makes the bucket
	doubted chan struct{} // what was told is not so any more
}

// Open opens the bucket, and makes it where there is none. With [Options.Existing] nothing is sent before it is used.
func Open(ctx context.Context, js jetstream.JetStream, opts Options) (*Bucket, error) {
	if opts.Logger == nil {
		return nil, errors.New("alive: a logger is needed")
	}
	b := &Bucket{js: js, opts: opts, making: make(chan struct{}, 1), doubted: make(chan struct{}, 1)}
	if opts.Existing {
		return b, nil
	}
	if _, err := b.ensure(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// config is that of a NATS key-value bucket. Only the leader answers reads, since a replica may be behind. Revisions
// begin with the time, so that none of a bucket that was lost is one of its successor's, for which it would be taken.
func (b *Bucket) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              streamName,
		Description:       "which candidates live",
		Subjects:          []string{subjectPrefix + ">"},
		Storage:           jetstream.MemoryStorage,
		Replicas:          max(b.opts.Replicas, 1),
		FirstSeq:          uint64(time.Now().UnixMicro()), //nolint:gosec // after 1970
		MaxAge:            keepFor,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgSize:        -1,
		MaxConsumers:      -1,
		Discard:           jetstream.DiscardNew,
		Duplicates:        2 * time.Minute,
		AllowRollup:       true,
		DenyDelete:        true,
	}
}

// ensure makes the bucket, or brings the one that is there in line with what leases need. One caller does so at a time.
func (b *Bucket) ensure(ctx context.Context) (jetstream.Stream, error) {
	select {
	case b.making <- struct{}{}:
		defer func() { <-b.making }()
	case <-ctx.Done():
		return nil, fmt.Errorf("make the key-value bucket %s: %w", Name, context.Cause(ctx))
	}
	stream, err := b.js.Stream(ctx, streamName)
	if b.opts.Existing {
		if err != nil {
			return nil, fmt.Errorf("find the key-value bucket %s, which a journald makes: %w", Name, err)
		}
		return stream, nil
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if stream, err = b.js.CreateStream(ctx, b.config()); err == nil {
			b.doubt()
			b.opts.Logger.InfoContext(ctx, "the bucket of liveness keys is made", "replicas", stream.CachedInfo().Config.Replicas)
		}
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		stream, err = b.js.Stream(ctx, streamName) // somebody else was faster
	}
	if err == nil {
		stream, err = b.mend(ctx, stream)
	}
	if err != nil {
		return nil, fmt.Errorf("make the key-value bucket %s: %w", Name, err)
	}
	return stream, nil
}

// mend changes what a bucket must not have: few replicas, several values or none for a key, a short memory, replicas that
// answer.
func (b *Bucket) mend(ctx context.Context, stream jetstream.Stream) (jetstream.Stream, error) {
	have := stream.CachedInfo().Config
	want := have
	want.Replicas = max(have.Replicas, b.opts.Replicas)
	want.MaxMsgsPerSubject, want.AllowDirect = 1, false
	if have.MaxAge != 0 {
		want.MaxAge = max(have.MaxAge, keepFor)
	}
	if want.Replicas == have.Replicas && want.MaxMsgsPerSubject == have.MaxMsgsPerSubject &&
		want.AllowDirect == have.AllowDirect && want.MaxAge == have.MaxAge {
		return stream, nil
	}
	return b.js.UpdateStream(ctx, want)
}

// doubt has followers begin anew, since something that they were told is not so.
func (b *Bucket) doubt() {
	select {
	case b.doubted <- struct{}{}:
	default:
	}
}
