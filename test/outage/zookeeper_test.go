package outage_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
)

const zooKeeperSession = 10 * time.Second

type silence struct{}

func (silence) Printf(string, ...any) {}

// zooKeeper is where a world is shown in ZooKeeper, seen directly.
type zooKeeper struct {
	t     *testing.T
	nodes *testenv.ZooKeeperNodes
	group string
	conn  *zk.Conn

	before int // writes before the outage
}

func newZooKeeper(t *testing.T, nodes *testenv.ZooKeeperNodes, group string) *zooKeeper {
	t.Helper()
	z := &zooKeeper{t: t, nodes: nodes, group: group}
	z.connect()
	t.Cleanup(func() { z.conn.Close() })
	return z
}

// connect reaches the server that leads now, at once.
func (z *zooKeeper) connect() {
	z.t.Helper()
	if z.conn != nil {
		z.conn.Close()
	}
	leader := z.nodes.Leader(z.t.Context())
	require.GreaterOrEqual(z.t, leader, 0, "a server leads")
	var err error
	z.conn, _, err = zk.Connect([]string{z.nodes.Addr(leader)}, zooKeeperSession, zk.WithLogger(silence{}))
	require.NoError(z.t, err)
}

func (z *zooKeeper) path(name string) string { return "/outage/" + z.group + "/" + name }

// shown implements [backend].
func (z *zooKeeper) shown() map[string]journal.LeaderInfo {
	z.t.Helper()
	all := map[string]journal.LeaderInfo{}
	for _, name := range componentNames() {
		data, _, err := z.conn.Get(z.path(name))
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		require.NoError(z.t, err)
		var leader journal.LeaderInfo
		require.NoError(z.t, json.Unmarshal(data, &leader))
		all[name] = leader
	}
	return all
}

// written is how often journald has written, by the versions of its fences. Each write raises one, or makes one.
func (z *zooKeeper) written() (writes int) {
	z.t.Helper()
	for _, name := range componentNames() {
		found, stat, err := z.conn.Exists("/leadership-journal/" + z.group + "/" + zooKeeperTarget + "/" + name)
		require.NoError(z.t, err)
		require.True(z.t, found, name)
		writes += int(stat.Version)
	}
	return writes
}
