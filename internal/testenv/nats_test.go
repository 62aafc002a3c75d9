package testenv_test

import (
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
)

func connect(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url, nats.MaxReconnects(-1))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	return js
}

func createStream(t *testing.T, js jetstream.JetStream, replicas int) jetstream.Stream {
	t.Helper()
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "S", Subjects: []string{"s.>"}, Storage: jetstream.FileStorage, Replicas: replicas,
	})
	require.NoError(t, err)
	return stream
}

func TestNATSStores(t *testing.T) {
	server, url := testenv.NATS(t)
	js := connect(t, url)
	stream := createStream(t, js, 1)
	ack, err := js.Publish(t.Context(), "s.a", []byte("x"))
	require.NoError(t, err)
	message, err := stream.GetMsg(t.Context(), ack.Sequence)
	require.NoError(t, err)
	require.Equal(t, "x", string(message.Data))

	options := server.JetStreamConfig()
	require.True(t, options.SyncAlways)
	require.DirExists(t, options.StoreDir)
}

func TestNATSLeavesNothing(t *testing.T) {
	var dir string
	t.Run("a test", func(t *testing.T) {
		server, url := testenv.NATS(t)
		createStream(t, connect(t, url), 1)
		dir = server.JetStreamConfig().StoreDir
	})
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNATSClusterSurvivesTheLossOfANode(t *testing.T) {
	cluster := testenv.NATSCluster(t, 3)
	js := connect(t, cluster.URL())
	stream := createStream(t, js, 3)
	publish(t, js, "before")

	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.Len(t, info.Cluster.Replicas, 2)
	lost := info.Cluster.Leader
	cluster.StopNode(lost)
	require.Nil(t, cluster.Node(lost))
	publish(t, js, "without one")

	cluster.StartNode(lost)
	require.True(t, cluster.Node(lost).JetStreamIsCurrent())
	publish(t, js, "with all")
	requireMessages(t, stream, "before", "without one", "with all")
}

// publish repeats until it is acknowledged: without its leader a stream takes nothing for a while. The id
// makes the repetitions one message.
func publish(t *testing.T, js jetstream.JetStream, text string) {
	t.Helper()
	await(t, func() bool {
		_, err := js.Publish(t.Context(), "s.a", []byte(text), jetstream.WithMsgID(text))
		return err == nil
	})
}

func requireMessages(t *testing.T, stream jetstream.Stream, want ...string) {
	t.Helper()
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, len(want), info.State.LastSeq)
	for i, text := range want {
		message, err := stream.GetMsg(t.Context(), uint64(i+1))
		require.NoError(t, err)
		require.Equal(t, text, string(message.Data))
	}
}
