package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
)

// overNATS is a client that reads and writes the journal itself. What holds in its group it folds by itself, from the
// group's first record on, so that it needs a journald for decisions only.
type overNATS struct {
	*life
	log   *stream.Log
	alive *alive.Bucket
	fold  *fold
}

func openNATS(ctx context.Context, opts Options, where place) (Client, error) {
	log, err := openLog(ctx, stream.Options{
		URL: opts.Server, Existing: true, Credentials: opts.Credentials, TLS: where.tls, Instance: opts.Instance, Logger: opts.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("open a client of the journal: %w", err)
	}
	bucket, err := alive.Open(ctx, log.JetStream(), alive.Options{Existing: true, Logger: opts.Logger})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a client of the journal: %w", err), closeLog(ctx, log))
	}
	c := &overNATS{life: newLife(ctx), log: log, alive: bucket, fold: newFold(opts.Group)}
	within, leave, err := c.enter(c.life.ctx)
	if err != nil {
		return nil, err
	}
	go func() {
		defer leave()
		err := log.FollowGroup(within, opts.Group, c.fold.apply)
		c.fold.end(cmp.Or(context.Cause(within), err))
	}()
	return c, nil
}

// openLog waits for a server, until ctx ends.
func openLog(ctx context.Context, opts stream.Options) (*stream.Log, error) {
	for failures := 1; ; failures++ {
		log, err := stream.Open(ctx, opts)
		if err == nil || ctx.Err() != nil || !errors.Is(err, nats.ErrNoServers) && !errors.Is(err, nats.ErrTimeout) {
			return log, err
		}
		opts.Logger.Log(ctx, severity(failures), "no NATS server can be reached yet", "error", err)
		pause(ctx, failures)
	}
}

func closeLog(ctx context.Context, log *stream.Log) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return log.Close(ctx)
}

// Group implements [Client].
func (c *overNATS) Group() string { return c.fold.group }

// Close implements [Client].
func (c *overNATS) Close() error {
	return errors.Join(c.close(), closeLog(c.life.ctx, c.log))
}

// Append implements [Client].
func (c *overNATS) Append(ctx context.Context, events ...journal.Event) ([]Ack, error) {
	if err := check(c.fold.group, events); err != nil {
		return nil, fmt.Errorf("append to the journal: %w", err)
	}
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("append to the journal: %w", err)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	stored, err := c.log.Append(ctx, events...)
	if err != nil {
		return nil, err
	}
	acks := make([]Ack, len(stored))
	for i, a := range stored {
		if acks[i], err = c.fold.judged(ctx, a.Sequence); err != nil {
			return nil, fmt.Errorf("append to the journal: %w", err)
		}
		acks[i].Duplicate = a.Duplicate
	}
	return acks, nil
}

// check says what is wrong with events, before anything is sent.
func check(group string, events []journal.Event) error {
	for i := range events {
		err := events[i].Validate()
		if err == nil && events[i].Group != group {
			err = fmt.Errorf("%w: it is of group %s, and this client is for %s", journal.ErrInvalid, events[i].Group, group)
		}
		if err != nil {
			return fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
	}
	return nil
}

// Renew implements [Client].
func (c *overNATS) Renew(ctx context.Context, key alive.Key, beat alive.Heartbeat, revision uint64) (uint64, error) {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return 0, fmt.Errorf("renew the liveness key of %s in %s: %w", key.Candidate, key.Group, err)
	}
	defer leave()
	return c.alive.Renew(ctx, key, beat, revision)
}

// Follow implements [Client].
func (c *overNATS) Follow(ctx context.Context, candidate string, tell func(Standing) error) error {
	within, leave, err := c.enter(ctx)
	if err != nil {
		return fmt.Errorf("follow %s in %s: %w", candidate, c.fold.group, err)
	}
	defer leave()
	return c.fold.follow(within, candidate, tell)
}
