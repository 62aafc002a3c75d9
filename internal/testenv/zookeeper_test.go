package testenv_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
)

type silence struct{}

func (silence) Printf(string, ...any) {}

// zooKeeperClient returns a client that has a session, and its events from then on.
func zooKeeperClient(t *testing.T, servers ...string) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	client, events, err := zk.Connect(servers, 10*time.Second, zk.WithLogger(silence{}))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	awaitSession(t, events, zk.StateHasSession)
	return client, events
}

func awaitSession(t *testing.T, events <-chan zk.Event, state zk.State) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for {
		select {
		case event := <-events:
			if event.State == state {
				return
			}
		case <-deadline.C:
			t.Fatalf("the client did not come to %s within a minute", state)
		}
	}
}

// write creates a node, again and again until the answer is that it is there.
func write(t *testing.T, client *zk.Conn, path string) {
	t.Helper()
	await(t, func() bool {
		_, err := client.Create(path, []byte(path), 0, zk.WorldACL(zk.PermAll))
		return err == nil || errors.Is(err, zk.ErrNodeExists)
	})
}

// awaitLeader returns the leader of an ensemble, which may be electing another on a machine that is busy.
func awaitLeader(t *testing.T, ensemble *testenv.ZooKeeperNodes) (leader int) {
	t.Helper()
	require.NoError(t, ensemble.AwaitQuorum(t.Context()))
	await(t, func() bool {
		leader = ensemble.Leader(t.Context())
		return leader >= 0
	})
	return leader
}

func requireHolds(t *testing.T, client *zk.Conn, path string) {
	t.Helper()
	data, _, err := client.Get(path)
	require.NoError(t, err)
	require.Equal(t, path, string(data))
}

func TestZooKeeperRestartsWithItsData(t *testing.T) {
	server := testenv.ZooKeeper(t)
	require.Equal(t, 0, server.Leader(t.Context()))
	require.Equal(t, []string{server.Addr(0)}, server.Servers())
	client, events := zooKeeperClient(t, server.Servers()...)
	write(t, client, "/a")
	requireHolds(t, client, "/a")

	require.NoError(t, server.Kill(0))
	awaitSession(t, events, zk.StateDisconnected)
	require.Equal(t, -1, server.Leader(t.Context()))
	require.NoError(t, server.Start(0))
	require.NoError(t, server.AwaitQuorum(t.Context()))
	awaitSession(t, events, zk.StateHasSession)
	requireHolds(t, client, "/a")
}

func TestZooKeeperEnsembleLivesWithAMajority(t *testing.T) {
	ensemble := testenv.ZooKeeperEnsemble(t, 3)
	client, events := zooKeeperClient(t, ensemble.Servers()...)
	write(t, client, "/three")

	first := awaitLeader(t, ensemble)
	require.NoError(t, ensemble.Kill(first))
	second := awaitLeader(t, ensemble)
	require.NotEqual(t, first, second)
	write(t, client, "/two")

	require.NoError(t, ensemble.Kill(second))
	await(t, func() bool { return client.State() != zk.StateHasSession })
	await(t, func() bool { return ensemble.Leader(t.Context()) == -1 })
	for len(events) > 0 {
		<-events
	}

	require.NoError(t, ensemble.Start(first))
	require.NoError(t, ensemble.AwaitQuorum(t.Context()))
	awaitSession(t, events, zk.StateHasSession)
	require.NoError(t, ensemble.Start(second))
	require.NoError(t, ensemble.AwaitQuorum(t.Context()))
	for i := range 3 {
		member, _ := zooKeeperClient(t, ensemble.Addr(i))
		_, err := member.Sync("/two")
		require.NoError(t, err)
		requireHolds(t, member, "/three")
		requireHolds(t, member, "/two")
	}
}

func TestZooKeeperEnsembleDropsAFrozenLeader(t *testing.T) {
	ensemble := testenv.ZooKeeperEnsemble(t, 3)
	first := awaitLeader(t, ensemble)
	require.NoError(t, ensemble.Freeze(first))
	require.NotEqual(t, first, awaitLeader(t, ensemble))

	require.NoError(t, ensemble.Thaw(first))
	require.NoError(t, ensemble.Thaw(first))
	require.NotEqual(t, first, awaitLeader(t, ensemble))
}

func TestZooKeeperRefusesWhatCanNotBe(t *testing.T) {
	server := testenv.ZooKeeper(t)
	require.EqualError(t, server.Kill(-1), "killing ZooKeeper node -1: there are nodes 0 to 0")
	require.EqualError(t, server.Start(0), "starting zookeeper-0: it was not killed")
	require.NoError(t, server.Kill(0))
	require.NoError(t, server.Kill(0))
	require.EqualError(t, server.Freeze(0), "freezing zookeeper-0: it does not run")
}

func TestZooKeeperExpiresASession(t *testing.T) {
	for name, size := range map[string]int{"single": 1, "ensemble": 3} {
		t.Run(name, func(t *testing.T) {
			nodes := testenv.ZooKeeperEnsemble(t, size)
			for i := range size {
				requireExpires(t, nodes, i)
			}
		})
	}
}

// requireExpires expires the session of a client of node i.
func requireExpires(t *testing.T, nodes *testenv.ZooKeeperNodes, i int) {
	t.Helper()
	client, events := zooKeeperClient(t, nodes.Addr(i))
	_, err := client.Create("/ephemeral", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	session := client.SessionID()

	require.NoError(t, nodes.ExpireSession(t.Context(), session))
	awaitSession(t, events, zk.StateExpired)
	leader, _ := zooKeeperClient(t, nodes.Addr(awaitLeader(t, nodes)))
	found, _, err := leader.Exists("/ephemeral")
	require.NoError(t, err)
	require.False(t, found)
	require.ErrorContains(t, nodes.ExpireSession(t.Context(), session), "does not know the session")
}

type testsThat func() int

func (run testsThat) Run() int { return run() }

func TestSharedZooKeeperIsStartedOnceAndStopped(t *testing.T) {
	var shared testenv.SharedZooKeeper
	var servers []string
	code := shared.Run(testsThat(func() int {
		servers = shared.Servers(t)
		require.Equal(t, servers, shared.Servers(t))
		_, _ = zooKeeperClient(t, servers...)
		return 3
	}))
	require.Equal(t, 3, code)
	_, err := net.Dial("tcp", servers[0])
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestSharedZooKeeperIsNotStartedForNobody(t *testing.T) {
	var shared testenv.SharedZooKeeper
	require.Equal(t, 3, shared.Run(testsThat(func() int { return 3 })))
}
