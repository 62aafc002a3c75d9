package zk

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Kind is the kind of all targets in ZooKeeper.
const Kind = "zk"

// Options are what a [Client] is made of.
type Options struct {
	// Servers are those of the ensemble, host:port each; a port that is missing is 2181. The last one may end in a
	// chroot, such as "zk-3:2181/prod", which all paths are below.
	Servers []string

	// SessionTimeout is how long a server may be mute before the connection counts as lost, about two thirds of it; the
	// ensemble bounds it. 0: ten seconds.
	SessionTimeout time.Duration

	// Digest is user:password. Nodes that are made are then the user's, and everybody may read them. Empty: everybody
	// may do everything.
	Digest string

	// Resync is how often everything that is watched is read again, in case that a change was not told. 0: five minutes.
	Resync time.Duration

	Logger *slog.Logger

	// Dial makes the connections; nil: over TCP.
	Dial func(ctx context.Context, server string) (net.Conn, error)

	// Wrap is called around each write, with the context of the push that it belongs to; nil: nothing is. It is where
	// tests have writes fail, or land late.
	Wrap func(ctx context.Context, write func(ctx context.Context) error) error
}

const (
	defaultSessionTimeout = 10 * time.Second
	defaultResync         = 5 * time.Minute
)

// Client is the way to one ensemble. It is safe for concurrent use, and has to be closed.
type Client struct {
	opts    Options
	servers []string
	root    string // the chroot; empty: none
	acl     []gozk.ACL

	cancel context.CancelFunc
	ended  chan struct{} // when the connection is closed for good

	mu       sync.Mutex
	standing *standing
	watched  map[string]map[*part]struct{} // by path
}

// NewClient begins to connect, and does not wait for it: a target whose ensemble is down fails until it is back. The
// client lives until it is closed, or ctx ends.
func NewClient(ctx context.Context, opts Options) (*Client, error) {
	servers, root, err := parseServers(opts.Servers)
	if err != nil {
		return nil, err
	}
	acl, err := makeACL(opts.Digest)
	if err != nil {
		return nil, err
	}
	if opts.SessionTimeout == 0 {
		opts.SessionTimeout = defaultSessionTimeout
	}
	if opts.Resync == 0 {
		opts.Resync = defaultResync
	}
	if opts.Dial == nil {
		opts.Dial = func(ctx context.Context, server string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server)
		}
	}
	if opts.Wrap == nil {
		opts.Wrap = func(ctx context.Context, write func(context.Context) error) error { return write(ctx) }
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &Client{
		opts: opts, servers: servers, root: root, acl: acl, cancel: cancel, ended: make(chan struct{}),
		standing: newStanding(nil, nil), watched: map[string]map[*part]struct{}{},
	}
	go func() {
		defer close(c.ended)
		c.stayConnected(ctx)
	}()
	return c, nil
}

// Close ends the connection and all that waits for it. Where the server does not answer that takes some seconds, at
// most. It may be repeated.
func (c *Client) Close() {
	c.cancel()
	<-c.ended
}

// Connect makes the Target that a description means.
func (c *Client) Connect(group string, spec journal.Target) (projector.Target, error) {
	if err := Validate(group, spec); err != nil {
		return nil, err
	}
	t := &target{client: c, group: group, spec: spec, objects: map[string]*object{}, added: make(chan struct{})}
	for _, component := range spec.Components {
		if _, err := t.object(component); err != nil {
			return nil, fmt.Errorf("target %s: %w", spec.Name, err)
		}
	}
	return t, nil
}
