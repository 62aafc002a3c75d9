package alive_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
)

// nodeVariable has the tests' own program be a NATS server, which can be killed: its number, its directory and the ports
// of all nodes, first those for clients and then those for each other.
const nodeVariable = "JOURNALD_TEST_NATS_NODE"

func TestMain(m *testing.M) {
	if spec := os.Getenv(nodeVariable); spec != "" {
		fmt.Fprintln(os.Stderr, serve(strings.Fields(spec)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve is a node until it is killed, or whoever started it has ended.
func serve(spec []string) error {
	i, dir, ports := number(spec[0]), spec[1], spec[2:]
	size := len(ports) / 2
	options := &server.Options{
		ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: number(ports[i]), NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: dir, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 64 << 20,
		Cluster: server.ClusterOpts{Name: "killed", Host: "127.0.0.1", Port: number(ports[size+i])},
	}
	for _, port := range ports[size:] {
		options.Routes = append(options.Routes, &url.URL{Scheme: "nats", Host: "127.0.0.1:" + port})
	}
	node, err := server.NewServer(options)
	if err != nil {
		return err
	}
	node.Start()
	_, err = os.Stdin.Read(make([]byte, 1))
	node.Shutdown()
	return err
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // 0 is a port that nothing works with
	return n
}

// nodes are three servers of one cluster, each a process.
type nodes struct {
	t         *testing.T
	dir       string
	ports     []string
	processes []*exec.Cmd
}

func startNodes(t *testing.T) *nodes {
	t.Helper()
	n := &nodes{t: t, dir: t.TempDir(), processes: make([]*exec.Cmd, 3)}
	var listeners []net.Listener
	for range 2 * len(n.processes) {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners = append(listeners, l)
		n.ports = append(n.ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	for _, l := range listeners {
		require.NoError(t, l.Close())
	}
	for i := range n.processes {
		n.start(i)
	}
	t.Cleanup(func() {
		for i := range n.processes {
			n.kill(i)
		}
	})
	return n
}

func (n *nodes) start(i int) {
	n.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(n.t.Context()), os.Args[0])
	spec := append([]string{strconv.Itoa(i), filepath.Join(n.dir, strconv.Itoa(i))}, n.ports...)
	cmd.Env = []string{nodeVariable + "=" + strings.Join(spec, " ")}
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe() // whose other end is closed when the tests end, however they do
	require.NoError(n.t, err)
	require.NoError(n.t, cmd.Start())
	n.processes[i] = cmd
}

// kill takes a node down with no time for a farewell.
func (n *nodes) kill(i int) {
	n.t.Helper()
	if cmd := n.processes[i]; cmd != nil {
		require.NoError(n.t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		n.processes[i] = nil
	}
}

// connect reaches the nodes, and returns when JetStream works.
func (n *nodes) connect() jetstream.JetStream {
	n.t.Helper()
	var urls []string
	for i := range n.processes {
		urls = append(urls, "nats://127.0.0.1:"+n.ports[i])
	}
	conn, err := nats.Connect(strings.Join(urls, ","), nats.ReconnectWait(10*time.Millisecond), nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true))
	require.NoError(n.t, err)
	n.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(n.t, err)
	require.Eventually(n.t, func() bool {
		_, err := alive.Open(n.t.Context(), js, alive.Options{Replicas: 3, Logger: logger(n.t)})
		return err == nil
	}, limit, 50*time.Millisecond)
	return js
}

// TestALeaderThatIsKilled is the bucket's. Nobody can renew until there is another one, and none of what was renewed before
// is lost.
func TestALeaderThatIsKilled(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	js := n.connect()
	b := open(t, js, 3)
	r := &renewer{t: t, b: b}
	e := listen(t, b)
	e.hears("began")
	require.Empty(t, e.hears(r.renews()))

	stream, err := js.Stream(t.Context(), "KV_alive")
	require.NoError(t, err)
	leader := number(strings.TrimPrefix(stream.CachedInfo().Cluster.Leader, "n"))
	before := r.revision
	n.kill(leader)
	told := r.renews()
	require.Greater(t, r.revision, before)
	e.hears(told)
	found, err := b.Get(t.Context(), k1)
	require.NoError(t, err)
	require.Equal(t, r.revision, found.Revision)

	n.start(leader)
	e.hears(r.renews())
}
