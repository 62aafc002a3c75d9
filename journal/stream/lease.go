package stream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// LeaseBucket is the key-value bucket that leases are in. It is in memory, with as many copies as the journal: a lease
// that is lost with all servers is free, which is what it is for.
const LeaseBucket = "journald-lease"

const (
	leaseKey      = "projector"
	shortestLease = 500 * time.Millisecond
)

// ErrLeaseLost is the cause with which the context of a held lease ends when it is lost.
var ErrLeaseLost = errors.New("lease lost")

// Lease settles which instance tries to be the projector. It is a matter of liveness alone: an instance that was paused
// may believe for a moment that it still holds it, so whatever must not happen twice is fenced elsewhere.
//
// A Lease is used by one goroutine at a time.
type Lease struct {
	js       jetstream.JetStream
	holder   string
	ttl      time.Duration
	replicas int

	bucket  jetstream.KeyValue
	current *holding
}

// holding is the time from one Acquire to the loss or Release. Its goroutine owns revision until done.
type holding struct {
	token    string // the holder and a word that no other holding has
	revision uint64
	held     context.Context
	stop     context.CancelCauseFunc
	done     sync.WaitGroup
}

// NewLease is the lease of a log's projector for this instance. A holder that stops renewing is succeeded after ttl;
// 2 s is usual, and less than half a second is refused by Acquire.
func (l *Log) NewLease(ttl time.Duration) *Lease {
	return &Lease{js: l.js, holder: l.opts.Instance, ttl: ttl, replicas: l.opts.Replicas}
}

// Acquire blocks until this instance holds the lease or ctx ends. The context that it returns ends with ctx, and with
// [ErrLeaseLost] as its cause no later than others can hold the lease, going by this process's clock. Call Release
// before the next Acquire.
func (l *Lease) Acquire(ctx context.Context) (context.Context, error) {
	if l.current != nil {
		return nil, errors.New("acquire the lease: it was not released")
	}
	if l.ttl < shortestLease {
		return nil, fmt.Errorf("acquire the lease: a ttl of %s is too short to be renewed in; at least %s", l.ttl, shortestLease)
	}
	token := l.holder + " " + rand.Text()
	for {
		sent := time.Now()
		revision, err := l.try(ctx, token)
		if err == nil {
			return l.hold(ctx, &holding{token: token, revision: revision}, sent.Add(l.ttl)), nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("acquire the lease: %w", context.Cause(ctx))
		}
		if !errors.Is(err, jetstream.ErrKeyExists) && !passing(err) {
			return nil, fmt.Errorf("acquire the lease: %w", err)
		}
		if err := sleep(ctx, l.ttl/20); err != nil {
			return nil, fmt.Errorf("acquire the lease: %w", err)
		}
	}
}

// try takes the lease if nobody has it. A try whose outcome was unknown may have taken it, which its token shows.
func (l *Lease) try(ctx context.Context, token string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.ttl)
	defer cancel()
	if l.bucket == nil {
		bucket, err := l.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: LeaseBucket, Description: "which journald is the projector",
			TTL: l.ttl, History: 1, Storage: jetstream.MemoryStorage, Replicas: l.replicas,
		})
		if err != nil {
			return 0, fmt.Errorf("make bucket %s: %w", LeaseBucket, err)
		}
		l.bucket = bucket
	}
	revision, err := l.bucket.Create(ctx, leaseKey, []byte(token))
	if !errors.Is(err, jetstream.ErrKeyExists) {
		if err != nil {
			l.bucket = nil // it may be gone with the servers that had it in memory
		}
		return revision, err
	}
	if entry, getErr := l.bucket.Get(ctx, leaseKey); getErr == nil && string(entry.Value()) == token {
		return l.bucket.Update(ctx, leaseKey, []byte(token), entry.Revision()) // ours, and for how long still is not known
	}
	return 0, err
}

// hold renews until it fails, and returns what ends with the lease.
func (l *Lease) hold(ctx context.Context, h *holding, until time.Time) context.Context {
	h.held, h.stop = context.WithCancelCause(ctx)
	l.current = h
	h.done.Go(func() { h.stop(l.renew(h.held, h, until)) })
	return h.held
}

// renew returns why the lease is not held any more.
func (l *Lease) renew(ctx context.Context, h *holding, until time.Time) error {
	wait := l.ttl / 4
	for {
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		sent := time.Now()
		err := l.renewOnce(ctx, h, until)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			until, wait = sent.Add(l.ttl), l.ttl/4
		case errors.Is(err, errTaken) || !time.Now().Before(until):
			return fmt.Errorf("%w: %w", ErrLeaseLost, err)
		default:
			wait = min(l.ttl/20, time.Until(until))
		}
	}
}

var (
	errTaken    = errors.New("another instance holds it, or may")
	errMoved    = errors.New("its revision had moved")
	errReleased = errors.New("lease released")
)

// renewOnce extends the lease on condition that it is ours.
func (l *Lease) renewOnce(ctx context.Context, h *holding, until time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, min(l.ttl/4, time.Until(until)))
	defer cancel()
	revision, err := l.bucket.Update(ctx, leaseKey, []byte(h.token), h.revision)
	if err == nil {
		h.revision = revision
		return nil
	}
	if !wrongRevision(err) {
		return err
	}
	return errors.Join(err, l.reread(ctx, h))
}

// reread takes the revision of an earlier write of ours whose outcome was not known.
func (l *Lease) reread(ctx context.Context, h *holding) error {
	entry, err := l.bucket.Get(ctx, leaseKey)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return errTaken
	case err != nil:
		return err
	case string(entry.Value()) != h.token:
		return errTaken
	}
	h.revision = entry.Revision()
	return errMoved
}

// Release gives the lease up, so that a successor follows at once. It returns after the context of Acquire has ended.
// Releasing what is not held, or not any more, does nothing.
func (l *Lease) Release(ctx context.Context) error {
	h := l.current
	if h == nil {
		return nil
	}
	l.current = nil
	h.stop(errReleased)
	h.done.Wait()
	if errors.Is(context.Cause(h.held), ErrLeaseLost) {
		return nil
	}
	err := l.bucket.Delete(ctx, leaseKey, jetstream.LastRevision(h.revision))
	if wrongRevision(err) {
		if err = l.reread(ctx, h); errors.Is(err, errMoved) {
			err = l.bucket.Delete(ctx, leaseKey, jetstream.LastRevision(h.revision))
		}
	}
	if err != nil && !errors.Is(err, errTaken) && !wrongRevision(err) {
		return fmt.Errorf("release the lease, which ends by itself after %s: %w", l.ttl, err)
	}
	return nil
}

// wrongRevision says that the key has changed. JetStream has two codes for it.
func wrongRevision(err error) bool {
	code, _ := apiCode(err)
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}
