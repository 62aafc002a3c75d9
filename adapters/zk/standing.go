package zk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	firstReconnect = 100 * time.Millisecond
	lastReconnect  = time.Second
	shortestDial   = time.Second // for one server, whatever the session's time-out
)

var (
	// errUnreachable says that nothing was sent.
	errUnreachable = errors.New("ZooKeeper can't be reached")

	errClosed = errors.New("the client is closed")
)

// standing is how the connection stands. It is never changed, but replaced.
type standing struct {
	session *session      // nil: there is none
	err     error         // why not; nil: it is being tried, and has not failed yet
	next    chan struct{} // closed when it is replaced
}

func newStanding(s *session, err error) *standing {
	return &standing{session: s, err: err, next: make(chan struct{})}
}

func (c *Client) now() *standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standing
}

func (c *Client) stands(s *session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.standing.next)
	c.standing = newStanding(s, err)
}

// session is the connection, or why there is none. It waits for an attempt that is the first since there was one.
func (c *Client) session(ctx context.Context) (*session, error) {
	for {
		now := c.now()
		if now.session != nil || now.err != nil {
			return now.session, now.err
		}
		select {
		case <-now.next:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errUnreachable, context.Cause(ctx))
		}
	}
}

// connected waits until there is a connection.
func (c *Client) connected(ctx context.Context) (*session, error) {
	for {
		now := c.now()
		if now.session != nil {
			return now.session, nil
		}
		select {
		case <-now.next:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-c.ended:
			return nil, errClosed
		}
	}
}

// stayConnected has one connection after another until ctx ends.
func (c *Client) stayConnected(ctx context.Context) {
	defer func() { c.stands(nil, fmt.Errorf("%w: %w", errUnreachable, errClosed)) }()
	wait := &backoff.ExponentialBackOff{
		InitialInterval: firstReconnect, RandomizationFactor: backoff.DefaultRandomizationFactor,
		Multiplier: backoff.DefaultMultiplier, MaxInterval: lastReconnect,
	}
	wait.Reset()
	down := false
	for ctx.Err() == nil {
		s, err := c.connect(ctx)
		if err != nil {
			c.stands(nil, fmt.Errorf("%w: %w", errUnreachable, err))
			if !down && ctx.Err() == nil {
				c.opts.Logger.Warn("ZooKeeper can't be reached", "servers", c.servers, "error", err)
			}
			down = true
			pause(ctx, wait.NextBackOff())
			continue
		}
		down = false
		wait.Reset()
		c.opts.Logger.Info("connected to ZooKeeper", "server", s.server)
		c.serve(ctx, s)
	}
}

// serve lets a connection be used until it is lost.
func (c *Client) serve(ctx context.Context, s *session) {
	c.stands(s, nil)
	select {
	case <-s.ctx.Done():
		c.opts.Logger.Warn("the connection to ZooKeeper is lost", "server", s.server, "error", context.Cause(s.ctx))
	case <-ctx.Done():
	}
	c.stands(nil, nil)
	s.close()
}

// connect tries each server once, beginning anywhere, so that many clients spread over the ensemble.
func (c *Client) connect(ctx context.Context) (*session, error) {
	each := max(c.opts.SessionTimeout/time.Duration(len(c.servers)), shortestDial)
	var errs []error
	for _, i := range rand.Perm(len(c.servers)) {
		attempt, cancel := context.WithTimeout(ctx, each)
		s, err := c.open(attempt, c.servers[i])
		cancel()
		if err == nil {
			return s, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", c.servers[i], err))
	}
	return nil, errors.Join(errs...)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
