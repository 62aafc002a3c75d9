package crash_test

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
)

// TestNATSOutage stops the NATS servers under load, and starts them again. Meanwhile events are refused as temporarily
// not to be stored; afterwards all that was acknowledged is there, and the projector goes on by itself.
func TestNATSOutage(t *testing.T) {
	seed := seeded(t)
	nats := newNATS(t)
	url := nats.server.ClientURL()
	cluster := newCluster(t)
	i := bin.Start(t, "--nats-url", url, "--instance=a", cluster.settings(cluster.config, natsSize))
	load := newLoad(t, newSeats(i), seed, 5, shown, plain)
	cluster.witness.expect(load)
	load.begin()
	load.more(100)

	nats.stop()
	client := newClient()
	began := time.Now()
	_, err := client.Publish(t.Context(), i.URL(), "", journal.Event{
		ID: "away", Source: "candidate/web-1", Group: "away", Component: "web", Time: time.Now().UTC(),
		Data: &journal.Grant{Candidate: "web-1", Session: "s1"},
	})
	refused, ok := errors.AsType[*journald.Refusal](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, http.StatusServiceUnavailable, refused.Status, refused.Text)
	require.Contains(t, refused.Text, "with the same ids")
	t.Logf("without NATS an event was refused after %s", time.Since(began).Round(time.Millisecond))
	await(t, patient, "it is not ready", func() bool {
		s, err := client.standing(t.Context(), i)
		return err == nil && !s.ready
	})

	nats.start()
	load.more(100)
	await(t, patient, "it is ready", func() bool {
		s, err := client.standing(t.Context(), i)
		return err == nil && s.ready && s.acts
	})
	load.settle()
	load.converges(cluster, url)
	load.ask(t.Context(), i)
	cluster.witness.faultless(t)
	i.Terminate(patient)

	records := readAll(t, openLog(t, stream.Options{URL: url, MaxBytes: journalSize}))
	load.checkRecords(records)
	load.checkView(load.replay(records, seed).view)
}

// natsServer is a NATS server that can be stopped and started again at the same address, with what it stored.
type natsServer struct {
	t       *testing.T
	options *server.Options
	server  *server.Server
}

func newNATS(t *testing.T) *natsServer {
	t.Helper()
	n := &natsServer{t: t, options: &server.Options{
		ServerName: "n1", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		JetStreamMaxStore: 4 * journalSize, JetStreamMaxMemory: 64 << 20, NoLog: true, NoSigs: true,
	}}
	n.start()
	n.options.Port = n.server.Addr().(*net.TCPAddr).Port
	t.Cleanup(n.stop)
	return n
}

func (n *natsServer) start() {
	n.t.Helper()
	var err error
	n.server, err = server.NewServer(n.options.Clone())
	require.NoError(n.t, err)
	n.server.Start()
	require.True(n.t, n.server.ReadyForConnections(patient))
}

func (n *natsServer) stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}
