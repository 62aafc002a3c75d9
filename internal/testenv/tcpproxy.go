package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// TCPProxy forwards the connections made to Addr to one upstream address, and puts between the two what
// networks do. Bytes are never reordered or changed, nor lost while the connection that carries them lives.
// All methods are safe for concurrent use, and act on connections that are open already.
type TCPProxy struct {
	upstream string
	listener net.Listener
	stop     context.CancelFunc
	accepted sync.WaitGroup
	fresh    func() *links

	mu       sync.Mutex
	links    *links        // nil while cut
	thawed   chan struct{} // closed while bytes may pass
	up, down time.Duration
}

// links are the connections accepted between two cuts.
type links struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// chunk is what one read returned: bytes, and whether they are the last of that direction.
type chunk struct {
	data []byte
	end  bool
	due  time.Time
}

const (
	chunkSize   = 32 << 10
	chunksAhead = 256 // of one direction, that wait for their time or for Thaw
)

// StartTCPProxy listens on a free loopback port until ctx ends or Close is called.
func StartTCPProxy(ctx context.Context, upstream string) (*TCPProxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return nil, fmt.Errorf("starting a TCP proxy to %s: %w", upstream, err)
	}
	ctx, stop := context.WithCancel(ctx)
	p := &TCPProxy{upstream: upstream, listener: listener, stop: stop, thawed: make(chan struct{})}
	p.fresh = func() *links {
		l := &links{}
		l.ctx, l.cancel = context.WithCancel(ctx)
		return l
	}
	p.links = p.fresh()
	close(p.thawed)
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	p.accepted.Go(p.accept)
	return p, nil
}

// NewTCPProxy is StartTCPProxy until the end of the test.
func NewTCPProxy(tb testing.TB, upstream string) *TCPProxy {
	tb.Helper()
	p, err := StartTCPProxy(context.WithoutCancel(tb.Context()), upstream)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// Addr returns the host:port to connect to. It stays the same through cuts.
func (p *TCPProxy) Addr() string { return p.listener.Addr().String() }

// Cut resets all connections and, until Resume, each new one as soon as it is made. No byte passes once Cut
// has returned.
func (p *TCPProxy) Cut() {
	p.mu.Lock()
	old := p.links
	p.links = nil
	p.mu.Unlock()
	if old != nil {
		old.cancel()
		old.wg.Wait()
	}
}

// Resume ends a Cut. What was cut stays closed: clients connect again.
func (p *TCPProxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links == nil {
		p.links = p.fresh()
	}
}

// Delay holds back what is read from now on: for up on its way to the upstream, for down on its way back.
// It is latency; throughput stays.
func (p *TCPProxy) Delay(up, down time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down = up, down
}

// Freeze stops forwarding and closes nothing, as a paused machine or a silent loss of packets does: the end of
// a connection isn't passed on either, and new connections are accepted and stay mute. A write that is under
// way when Freeze is called may still pass.
func (p *TCPProxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
		p.thawed = make(chan struct{})
	default:
	}
}

// Thaw ends a Freeze: what was held back passes now.
func (p *TCPProxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
	default:
		close(p.thawed)
	}
}

// Close stops listening, closes all connections and waits until nothing of the proxy runs. It may be repeated.
func (p *TCPProxy) Close() {
	p.stop()
	p.Cut()
	p.accepted.Wait()
}

func (p *TCPProxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed: nothing else ends a loopback listener
		}
		client := conn.(*net.TCPConn)
		p.mu.Lock()
		if l := p.links; l != nil {
			l.wg.Go(func() { p.forward(l.ctx, client) })
		} else {
			reset(client)
		}
		p.mu.Unlock()
	}
}

// direction is one half of a connection. Reading runs ahead of writing, so that a delay doesn't hold up the
// sender.
type direction struct {
	src, dst *net.TCPConn
	delay    *time.Duration // guarded by the proxy's mu
	chunks   chan chunk
}

// forward serves one connection until both directions have ended or one has failed, or ctx ends.
func (p *TCPProxy) forward(ctx context.Context, client *net.TCPConn) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.upstream)
	if err != nil {
		reset(client)
		return
	}
	server := conn.(*net.TCPConn)
	ctx, fail := context.WithCancel(ctx)
	defer fail()
	unhook := context.AfterFunc(ctx, func() { reset(client, server) })
	var wg sync.WaitGroup
	for _, d := range []direction{
		{src: client, dst: server, delay: &p.up, chunks: make(chan chunk, chunksAhead)},
		{src: server, dst: client, delay: &p.down, chunks: make(chan chunk, chunksAhead)},
	} {
		for _, half := range []func(context.Context, direction) error{p.read, p.write} {
			wg.Go(func() {
				if half(ctx, d) != nil {
					fail() // both peers see a reset, which is all that a proxy can tell
				}
			})
		}
	}
	wg.Wait()
	if unhook() {
		_ = client.Close()
		_ = server.Close()
	}
}

func (p *TCPProxy) read(ctx context.Context, d direction) error {
	buffer := make([]byte, chunkSize)
	for {
		n, err := d.src.Read(buffer)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		p.mu.Lock()
		next := chunk{data: bytes.Clone(buffer[:n]), end: err != nil, due: time.Now().Add(*d.delay)}
		p.mu.Unlock()
		select {
		case d.chunks <- next:
		case <-ctx.Done():
			return ctx.Err()
		}
		if next.end {
			return nil
		}
	}
}

func (p *TCPProxy) write(ctx context.Context, d direction) error {
	for {
		var next chunk
		select {
		case next = <-d.chunks:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := p.hold(ctx, next.due); err != nil {
			return err
		}
		if _, err := d.dst.Write(next.data); err != nil {
			return err
		}
		if next.end {
			return d.dst.CloseWrite()
		}
	}
}

// hold returns when it is due and the proxy is not frozen.
func (p *TCPProxy) hold(ctx context.Context, due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	thawed := p.thawed
	p.mu.Unlock()
	select {
	case <-thawed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reset closes so that the peer sees a reset, not an orderly end.
func reset(conns ...*net.TCPConn) {
	for _, conn := range conns {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
}
