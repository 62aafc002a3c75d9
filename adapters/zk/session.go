package zk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	gozk "github.com/go-zookeeper/zk"
)

var errLost = errors.New("the connection was lost")

// session is one connection to one server, with a ZooKeeper session of its own. The library would go on with the
// session on another connection; this does not let it, so that there is one way only to lose what was watched.
type session struct {
	server string
	conn   *gozk.Conn
	events <-chan gozk.Event // closed when nothing of the library's runs any more
	wire   net.Conn

	ctx context.Context // ends when the connection is lost
	end context.CancelCauseFunc

	mu      sync.Mutex
	closing bool
	calls   sync.WaitGroup
}

// open connects to a server, and returns when it has answered.
func (c *Client) open(ctx context.Context, server string) (*session, error) {
	wire, err := c.opts.Dial(ctx, server)
	if err != nil {
		return nil, err
	}
	s := &session{server: server, wire: wire}
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	s.conn, s.events, err = gozk.Connect([]string{server}, c.opts.SessionTimeout,
		gozk.WithHostProvider(&oneServer{server: server}), gozk.WithDialer(s.handOver()), gozk.WithLogInfo(false),
		gozk.WithLogger(debugLog{c.opts.Logger}), gozk.WithEventCallback(func(e gozk.Event) { c.event(s, ready, e) }))
	if err != nil {
		s.end(err)
		return nil, errors.Join(fmt.Errorf("begin a session: %w", err), wire.Close())
	}
	if err := s.greet(ctx, ready, c.opts.Digest); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// greet waits for the server's answer, and says who we are.
func (s *session) greet(ctx context.Context, ready <-chan struct{}, digest string) error {
	select {
	case <-ready:
	case <-s.ctx.Done():
		return fmt.Errorf("begin a session: %w", context.Cause(s.ctx))
	case <-ctx.Done():
		return fmt.Errorf("begin a session: %w", context.Cause(ctx))
	}
	if digest == "" {
		return nil
	}
	_, err := do(ctx, s, func(conn *gozk.Conn) (struct{}, error) {
		return struct{}{}, conn.AddAuth("digest", []byte(digest))
	})
	if err != nil {
		return fmt.Errorf("authenticate by digest: %w", err)
	}
	return nil
}

// handOver is a dialer that gives the library our connection, once.
func (s *session) handOver() gozk.Dialer {
	var once sync.Once
	return func(string, string, time.Duration) (net.Conn, error) {
		wire, err := net.Conn(nil), errLost
		once.Do(func() { wire, err = s.wire, nil })
		return wire, err
	}
}

// event is called by the library, in the order in which the server says things. It must not block.
func (c *Client) event(s *session, ready chan struct{}, e gozk.Event) {
	if e.Type != gozk.EventSession {
		c.notify(e)
		return
	}
	switch e.State {
	case gozk.StateHasSession:
		close(ready)
	case gozk.StateDisconnected, gozk.StateExpired, gozk.StateAuthFailed:
		s.end(fmt.Errorf("%w: %s", errLost, e.State))
	}
}

// do runs a request of the library's, which knows no contexts. When ctx ends it is let go of, and ends with the
// connection at the latest, a while after the server fell mute.
func do[T any](ctx context.Context, s *session, request func(*gozk.Conn) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if !s.begin() {
		return none, fmt.Errorf("%w: %w", errUnreachable, errLost)
	}
	answers := make(chan answer, 1)
	go func() {
		defer s.calls.Done()
		value, err := request(s.conn)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// begin counts a request that begins, unless the connection is gone.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.ctx.Err() != nil {
		return false
	}
	s.calls.Add(1)
	return true
}

// close ends the session, and waits until nothing of it runs. The library says goodbye to the server, and gives up
// waiting for its answer after some seconds.
func (s *session) close() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.conn.Close()
	s.end(errClosed)
	_ = s.wire.Close() // the library has closed it already, unless it hangs
	for range s.events {
	}
	s.calls.Wait()
}

// oneServer keeps the library from looking for servers by itself.
type oneServer struct {
	server string
	asked  bool
}

// Init implements [gozk.HostProvider].
func (*oneServer) Init([]string) error { return nil }

// Len implements [gozk.HostProvider].
func (*oneServer) Len() int { return 1 }

// Next implements [gozk.HostProvider]. From the second time on the library is told to wait, during which it is closed.
func (o *oneServer) Next() (string, bool) {
	again := o.asked
	o.asked = true
	return o.server, again
}

// Connected implements [gozk.HostProvider].
func (*oneServer) Connected() {}
