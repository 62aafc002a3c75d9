package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/journal"
)

// TestZooKeeperCredentials are read from a file, and never told.
func TestZooKeeperCredentials(t *testing.T) {
	name := filepath.Join(t.TempDir(), "zk")
	z := &config.ZooKeeper{Servers: []string{"127.0.0.1:2181"}, ACL: config.DigestACL, Credentials: name}
	_, err := zookeeperOptions(z, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "zookeeper.credentials: ")
	for _, text := range []string{"", "hunter2", "journald:", ":hunter2", "journald:hunter2\nagain:hunter2\n"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := zookeeperOptions(z, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "is not one line of user:password")
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.NoError(t, os.WriteFile(name, []byte("journald:hunter2\n"), 0o600))
	o, err := zookeeperOptions(z, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, "journald:hunter2", o.Digest)
}

// TestAConnectorMakesOneClientForAllTargets, and says what it can't serve.
func TestAConnectorMakesOneClientForAllTargets(t *testing.T) {
	c := &connector{ctx: t.Context(), zookeeper: config.Default().ZooKeeper, logger: slog.New(slog.DiscardHandler)}
	defer c.close()
	spec := journal.Target{Name: "zk", Kind: zk.Kind, Layout: zk.Latch, Path: "/leaders/{component}"}
	_, err := c.connect("a", spec)
	require.NoError(t, err)
	first := c.zk
	_, err = c.connect("b", spec)
	require.NoError(t, err)
	require.Same(t, first, c.zk)
	spec.Layout = "yaml"
	_, err = c.connect("b", spec)
	require.ErrorContains(t, err, `layout "yaml" is none of`)
	spec.Kind = "zookeeper"
	_, err = c.connect("b", spec)
	require.ErrorContains(t, err, `kind "zookeeper" is not in this version, which has k8s/configmap, k8s/lease, zk`)
}
