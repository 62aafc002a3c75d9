package testenv

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	loopback     = "127.0.0.1"
	natsReady    = 20 * time.Second
	natsPoll     = 10 * time.Millisecond
	natsAttempts = 5
	natsStore    = 1 << 30
	natsMemory   = 64 << 20
)

// NATS starts one server with JetStream that fsyncs every write, and returns it with the URL that clients
// connect to. Its store is removed at the end of the test, after the server has stopped.
func NATS(tb testing.TB) (*server.Server, string) {
	tb.Helper()
	node, err := startNode(nodeOptions("n1", tb.TempDir()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stopNode(node) })
	return node, node.ClientURL()
}

// NATSNodes is a cluster of NATS servers in this process, named n1, n2 and so on, each with JetStream that
// fsyncs every write. Its methods are for the goroutine of the test, which they fail when they can't do it.
type NATSNodes struct {
	tb      testing.TB
	options []*server.Options
	nodes   []*server.Server // nil where stopped
}

// NATSCluster starts size servers (three, for streams of three replicas) and returns when all take part in
// JetStream under one meta leader.
func NATSCluster(tb testing.TB, size int) *NATSNodes {
	tb.Helper()
	dir := tb.TempDir()
	var failed error
	for attempt := range natsAttempts { // a port that was free may have been taken since
		c := &NATSNodes{tb: tb, nodes: make([]*server.Server, size)}
		err := c.start(filepath.Join(dir, strconv.Itoa(attempt)))
		if err == nil {
			tb.Cleanup(c.stopAll)
			return c
		}
		c.stopAll()
		failed = errors.Join(failed, err)
	}
	tb.Fatalf("starting a NATS cluster: %v", failed)
	return nil
}

func (c *NATSNodes) start(dir string) error {
	size := len(c.nodes)
	ports, err := freePorts(2 * size)
	if err != nil {
		return err
	}
	routes := make([]*url.URL, size)
	for i := range routes {
		routes[i] = &url.URL{Scheme: "nats", Host: net.JoinHostPort(loopback, strconv.Itoa(ports[i]))}
	}
	for i := range size {
		name := fmt.Sprintf("n%d", i+1)
		options := nodeOptions(name, filepath.Join(dir, name))
		options.Port = ports[size+i]
		options.Cluster = server.ClusterOpts{Name: "testenv", Host: loopback, Port: ports[i]}
		options.Routes = routes
		c.options = append(c.options, options)
		if c.nodes[i], err = startNode(options); err != nil {
			return err
		}
	}
	return c.awaitMeta()
}

// awaitMeta waits until one running node leads JetStream's meta group, all others follow it, and it knows them
// well enough to place replicas on them.
func (c *NATSNodes) awaitMeta() error {
	deadline := time.NewTimer(natsReady)
	defer deadline.Stop()
	poll := time.NewTicker(natsPoll)
	defer poll.Stop()
	for !c.metaReady() {
		select {
		case <-poll.C:
		case <-deadline.C:
			return fmt.Errorf("no meta leader that all nodes follow within %s", natsReady)
		}
	}
	return nil
}

func (c *NATSNodes) metaReady() bool {
	running, placeable := 0, 0
	for _, node := range c.nodes {
		if node == nil {
			continue
		}
		if !node.JetStreamIsCurrent() {
			return false
		}
		running++
		placeable += len(node.JetStreamClusterPeers()) // none but the leader answers
	}
	return placeable >= running
}

// URL returns all nodes' client URLs, those stopped included, in the form that nats.Connect takes.
func (c *NATSNodes) URL() string {
	urls := make([]string, len(c.options))
	for i, o := range c.options {
		urls[i] = "nats://" + net.JoinHostPort(o.Host, strconv.Itoa(o.Port))
	}
	return strings.Join(urls, ",")
}

// Node returns the server of that name, nil while it is stopped.
func (c *NATSNodes) Node(name string) *server.Server {
	c.tb.Helper()
	return c.nodes[c.index(name)]
}

// StopNode stops a node in good order and returns when it has stopped. Its store stays. A node that leads
// hands over; to lose one without that, run servers as processes and kill them.
func (c *NATSNodes) StopNode(name string) {
	c.tb.Helper()
	i := c.index(name)
	stopNode(c.nodes[i])
	c.nodes[i] = nil
}

// StartNode starts stopped nodes again, each at the same address and with its store, and returns when all running
// nodes follow one meta leader. Where most have stopped that takes several at once.
func (c *NATSNodes) StartNode(names ...string) {
	c.tb.Helper()
	for _, name := range names {
		i := c.index(name)
		if c.nodes[i] != nil {
			c.tb.Fatalf("NATS node %s runs already", name)
		}
		node, err := startNode(c.options[i])
		if err != nil {
			c.tb.Fatalf("starting NATS node %s again: %v", name, err)
		}
		c.nodes[i] = node
	}
	if err := c.awaitMeta(); err != nil {
		c.tb.Fatalf("starting NATS nodes %v again: %v", names, err)
	}
}

func (c *NATSNodes) index(name string) int {
	c.tb.Helper()
	for i, o := range c.options {
		if o.ServerName == name {
			return i
		}
	}
	c.tb.Fatalf("no NATS node is named %q", name)
	return -1
}

func (c *NATSNodes) stopAll() {
	for i, node := range c.nodes {
		stopNode(node)
		c.nodes[i] = nil
	}
}

func nodeOptions(name, dir string) *server.Options {
	return &server.Options{
		ServerName:         name,
		Host:               loopback,
		Port:               server.RANDOM_PORT,
		JetStream:          true,
		StoreDir:           dir,
		SyncAlways:         true,
		JetStreamMaxStore:  natsStore,
		JetStreamMaxMemory: natsMemory,
		NoLog:              true,
		NoSigs:             true,
	}
}

func startNode(options *server.Options) (*server.Server, error) {
	node, err := server.NewServer(options.Clone())
	if err != nil {
		return nil, fmt.Errorf("making NATS server %s: %w", options.ServerName, err)
	}
	node.Start()
	if !node.ReadyForConnections(natsReady) {
		stopNode(node)
		return nil, fmt.Errorf("NATS server %s took no connections within %s", options.ServerName, natsReady)
	}
	return node, nil
}

// stopNode returns when the store is closed, so that its directory may be removed. A nil node has stopped.
func stopNode(node *server.Server) {
	if node == nil {
		return
	}
	node.Shutdown()
	node.WaitForShutdown()
}

// freePorts returns ports that were free a moment ago, all different.
func freePorts(n int) (ports []int, err error) {
	for range n {
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // only when all are found, lest one is found twice
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
