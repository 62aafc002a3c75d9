package interop_test

import (
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

var (
	kube      testenv.SharedKubernetes
	zookeeper testenv.SharedZooKeeper
	shipped   journald.Program
)

func TestMain(m *testing.M) {
	os.Exit(shipped.Run(with{zookeeper.Run, with{kube.Run, m}}))
}

type tests interface{ Run() int }

// with runs tests that something is there for.
type with struct {
	run   func(interface{ Run() int }) int
	tests tests
}

func (w with) Run() int { return w.run(w.tests) }

func logger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func zookeeperTarget(t *testing.T, spec journal.Target) (target projector.Target, disconnect func()) {
	t.Helper()
	client, err := zk.NewClient(t.Context(), zk.Options{Servers: zookeeper.Servers(t), Logger: logger(t)})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	target, err = client.Connect(group, spec)
	require.NoError(t, err)
	return target, client.Close
}
