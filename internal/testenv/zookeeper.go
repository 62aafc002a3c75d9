package testenv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	zooKeeperReady    = time.Minute // a machine that runs other tests beside
	zooKeeperPoll     = 10 * time.Millisecond
	zooKeeperAttempts = 5

	portTaken = "Address already in use" // Linux' words, in the JVM's exception
)

var errPortTaken = errors.New("another program has taken the port")

// ZooKeeperNodes are ZooKeeper servers, each a process of its own that can be killed, frozen and started
// again: one alone, or an ensemble. Nodes are numbered from 0. Methods are for one goroutine at a time.
type ZooKeeperNodes struct {
	java   string
	reaper *reaper // nil once stopped
	nodes  []*zooKeeperNode
}

// StartZooKeeper starts a single server, or an ensemble where size is more than one (three, to do without one
// of them), and returns when it serves. The caller stops it; should the caller's process die first, the servers
// die with it. ctx bounds the start, not the life of what was started.
func StartZooKeeper(ctx context.Context, size int) (*ZooKeeperNodes, error) {
	z, err := startZooKeeper(ctx, size, freePorts)
	if err != nil {
		return nil, fmt.Errorf("starting ZooKeeper: %w", err)
	}
	return z, nil
}

// startZooKeeper tries again where a port that was free has been taken since.
func startZooKeeper(ctx context.Context, size int, ports func(n int) ([]int, error)) (z *ZooKeeperNodes, err error) {
	java, err := zooKeeperProgram()
	if err != nil {
		return nil, err
	}
	for range zooKeeperAttempts {
		var p []int
		if p, err = ports(3 * size); err != nil {
			return nil, err
		}
		if z, err = startOnPorts(ctx, java, p); !errors.Is(err, errPortTaken) {
			return z, err
		}
	}
	return nil, err
}

// startOnPorts starts one node for each three ports.
func startOnPorts(ctx context.Context, java string, ports []int) (*ZooKeeperNodes, error) {
	reaper, err := startReaper()
	if err != nil {
		return nil, err
	}
	z := &ZooKeeperNodes{java: java, reaper: reaper}
	if err = z.start(ctx, ports); err == nil {
		return z, nil
	}
	if strings.Contains(z.output(), portTaken) {
		err = errors.Join(errPortTaken, err)
	}
	return nil, errors.Join(err, z.Stop())
}

func (z *ZooKeeperNodes) start(ctx context.Context, ports []int) error {
	var members strings.Builder
	for i := range len(ports) / 3 {
		name := fmt.Sprintf("zookeeper-%d", i)
		n := &zooKeeperNode{name: name, dir: filepath.Join(z.reaper.dir, name), port: ports[3*i]}
		z.nodes = append(z.nodes, n)
		fmt.Fprintf(&members, "server.%d=%s:%d:%d\n", i+1, loopback, ports[3*i+1], ports[3*i+2])
	}
	if len(z.nodes) == 1 {
		members.Reset() // without a member a server is one alone
	}
	for i, n := range z.nodes {
		if err := n.configure(i+1, members.String()); err != nil {
			return fmt.Errorf("configuring %s: %w", n.name, err)
		}
		if err := n.start(z.reaper, z.java); err != nil {
			return err
		}
	}
	return z.AwaitQuorum(ctx)
}

// ZooKeeper starts a single server until the end of the test, which may kill and freeze it; see SharedZooKeeper
// for tests that only use one.
func ZooKeeper(tb testing.TB) *ZooKeeperNodes {
	tb.Helper()
	return ZooKeeperEnsemble(tb, 1)
}

// ZooKeeperEnsemble is ZooKeeper with that many servers: three, to do without one of them.
func ZooKeeperEnsemble(tb testing.TB, size int) *ZooKeeperNodes {
	tb.Helper()
	z, err := StartZooKeeper(tb.Context(), size)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := z.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return z
}

// Servers returns the host:port of all nodes, those killed included, as zk.Connect takes them.
func (z *ZooKeeperNodes) Servers() []string {
	servers := make([]string, len(z.nodes))
	for i := range z.nodes {
		servers[i] = z.Addr(i)
	}
	return servers
}

// Addr returns the host:port of node i. It stays the same when the node is started again.
func (z *ZooKeeperNodes) Addr(i int) string { return z.nodes[i].addr() }

// Leader returns the node that leads, a single one too, and -1 while none does.
func (z *ZooKeeperNodes) Leader(ctx context.Context) int {
	for i, n := range z.nodes {
		if leads(n.mode(ctx)) {
			return i
		}
	}
	return -1
}

// AwaitQuorum waits until all nodes that run, frozen ones apart, serve under one leader, and are a majority.
// It gives up after a minute, and at once when a node has ended by itself; the error holds what nodes printed.
func (z *ZooKeeperNodes) AwaitQuorum(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, zooKeeperReady, fmt.Errorf("%s passed", zooKeeperReady))
	defer cancel()
	poll := time.NewTicker(zooKeeperPoll)
	defer poll.Stop()
	for !z.quorum(ctx) {
		for _, n := range z.nodes {
			if err := n.failure(); err != nil {
				return err
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for a quorum of ZooKeeper: %w\n%s", context.Cause(ctx), z.output())
		}
	}
	return nil
}

func (z *ZooKeeperNodes) quorum(ctx context.Context) bool {
	leaders, serving := 0, 0
	for _, n := range z.nodes {
		if n.process == nil || n.frozen {
			continue
		}
		mode := n.mode(ctx)
		if mode == "" {
			return false
		}
		if leads(mode) {
			leaders++
		}
		serving++
	}
	return leaders == 1 && 2*serving > len(z.nodes)
}

func (z *ZooKeeperNodes) output() string {
	var all strings.Builder
	for _, n := range z.nodes {
		fmt.Fprintf(&all, "%s:\n%s\n", n.name, &n.output)
	}
	return all.String()
}

// Kill kills node i, frozen or not, and returns when it is gone. Its data stays.
func (z *ZooKeeperNodes) Kill(i int) error { return z.change(i, "killing", (*zooKeeperNode).kill) }

// Start starts a killed node again, at the same address and with its data. AwaitQuorum waits until it serves.
func (z *ZooKeeperNodes) Start(i int) error {
	return z.change(i, "starting", func(n *zooKeeperNode) error {
		if n.process != nil || z.reaper == nil {
			return errors.New("it was not killed")
		}
		return n.start(z.reaper, z.java)
	})
}

// Freeze halts node i and closes nothing, as a paused machine does.
func (z *ZooKeeperNodes) Freeze(i int) error { return z.change(i, "freezing", (*zooKeeperNode).freeze) }

// Thaw ends a Freeze: the node goes on where it was.
func (z *ZooKeeperNodes) Thaw(i int) error { return z.change(i, "thawing", (*zooKeeperNode).thaw) }

func (z *ZooKeeperNodes) change(i int, doing string, change func(*zooKeeperNode) error) error {
	if i < 0 || i >= len(z.nodes) {
		return fmt.Errorf("%s ZooKeeper node %d: there are nodes 0 to %d", doing, i, len(z.nodes)-1)
	}
	if err := change(z.nodes[i]); err != nil {
		return fmt.Errorf("%s %s: %w", doing, z.nodes[i].name, err)
	}
	return nil
}

// Stop stops the nodes in good order and removes all they stored. Nothing of them is left, even where it
// returns an error. It may be repeated.
func (z *ZooKeeperNodes) Stop() error {
	if z.reaper == nil {
		return nil
	}
	var stopping sync.WaitGroup
	failures := make([]error, len(z.nodes)+1)
	for i, n := range z.nodes {
		stopping.Go(func() { failures[i] = n.stop() })
	}
	stopping.Wait()
	failures[len(z.nodes)] = z.reaper.reap()
	z.reaper = nil
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("stopping ZooKeeper: %w", err)
	}
	return nil
}

// SharedZooKeeper is one single server for all tests of a package, started by the first that asks. Its zero
// value is ready; Run stops it.
type SharedZooKeeper struct{ shared shared[*ZooKeeperNodes] }

// Servers returns the shared server's host:port, as zk.Connect takes it. Tests that share it keep to their own
// paths.
func (s *SharedZooKeeper) Servers(tb testing.TB) []string {
	tb.Helper()
	return s.shared.get(tb, func(ctx context.Context) (*ZooKeeperNodes, error) {
		return StartZooKeeper(ctx, 1)
	}).Servers()
}

// Run runs the tests, a *testing.M, and then stops the server. It returns the exit code for TestMain.
func (s *SharedZooKeeper) Run(tests interface{ Run() int }) int { return s.shared.run(tests) }
