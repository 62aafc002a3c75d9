package stream

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
)

// external is a JetStream of somebody else, and options to use it.
func external(t *testing.T) (jetstream.JetStream, Options) {
	t.Helper()
	_, url := testenv.NATS(t)
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js, Options{URL: url, MaxBytes: 64 << 20}
}

func TestExternalServer(t *testing.T) {
	_, opts := external(t)
	l := open(t, opts)
	_, err := l.Append(bounded(t, 10*time.Second), confirm("a"))
	require.NoError(t, err)
	require.Equal(t, opts.URL, l.ClientURL())
	require.False(t, l.Durability().Verified)
	require.Contains(t, l.Durability().Detail, "not verified")

	// a second instance sees the same journal
	second := open(t, opts)
	require.Equal(t, "a", follow(t, second, 1, 1)[0].Event.ID)
}

func TestExternalServerIsNotThere(t *testing.T) {
	address := freePorts(t, 1)[0]
	_, err := Open(bounded(t, 10*time.Second), Options{URL: "nats://" + address, MaxBytes: 1 << 20})
	require.ErrorIs(t, err, nats.ErrNoServers)
	require.ErrorContains(t, err, address)
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		opts Options
		want string
	}{
		{Options{}, "exactly one"},
		{Options{URL: "nats://x", Embedded: &Embedded{Dir: "d"}}, "exactly one"},
		{Options{URL: "nats://x"}, "nats.maxBytes"},
		{Options{URL: "nats://x", Existing: true, MaxBytes: 1}, "copies and size are what they are"},
		{Options{Embedded: &Embedded{Dir: "d"}, Existing: true}, "is elsewhere"},
		{Options{Embedded: &Embedded{}}, "data directory"},
		{Options{Embedded: &Embedded{Dir: "d", Listen: "4222"}}, "nats.listen"},
		{Options{Embedded: &Embedded{Dir: "d", Listen: "a:70000"}}, "70000"},
		{Options{Embedded: &Embedded{Dir: "d", Cluster: &Cluster{Listen: "a:1"}}}, "nats.cluster.name"},
		{Options{Embedded: &Embedded{Dir: "d", Cluster: &Cluster{Name: "c", Listen: "a:1", Routes: []string{"::"}}}}, "nats.cluster.routes"},
		{Options{Embedded: &Embedded{Dir: "d"}, Replicas: 9}, "9 replicas"},
	} {
		_, err := Open(t.Context(), c.opts)
		require.ErrorContains(t, err, c.want)
	}
}

// Each property that a weaker stream may differ in is named, with what to do.
func TestWeakerStreamIsRefused(t *testing.T) {
	want := (&Options{Replicas: 1, MaxBytes: 64 << 20}).streamConfig()
	for field, weaken := range map[string]func(*jetstream.StreamConfig){
		"storage":              func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"retention":            func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
		"max_age":              func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"max_msgs":             func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 },
		"max_msgs_per_subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1000 },
		"max_bytes":            func(c *jetstream.StreamConfig) { c.MaxBytes = -1 },
		"discard":              func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"deny_delete":          func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"deny_purge":           func(c *jetstream.StreamConfig) { c.DenyPurge = false },
		"allow_rollup_hdrs":    func(c *jetstream.StreamConfig) { c.DenyPurge, c.AllowRollup = false, true },
		"allow_msg_ttl":        func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
		"allow_msg_schedules": func(c *jetstream.StreamConfig) {
			c.AllowMsgSchedules, c.DenyPurge, c.Discard = true, false, jetstream.DiscardOld
		},
		"persist_mode": func(c *jetstream.StreamConfig) {
			c.PersistMode, c.AllowAtomicPublish = jetstream.AsyncPersistMode, false
		},
		"subjects":         func(c *jetstream.StreamConfig) { c.Subjects = []string{"leadership.*.*.confirm"} },
		"allow_atomic":     func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false },
		"duplicate_window": func(c *jetstream.StreamConfig) { c.Duplicates = time.Second },
		"max_msg_size":     func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 },
		"no_ack":           func(c *jetstream.StreamConfig) { c.NoAck, c.AllowAtomicPublish = true, false },
		"allow_direct":     func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"sources":          func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "OTHER"}} },
		"subject_transform": func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Destination: "x.>"}
		},
		"republish":         func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Destination: "x.>"} },
		"allow_msg_counter": func(c *jetstream.StreamConfig) { c.AllowMsgCounter, c.Discard = true, jetstream.DiscardOld },
		"first_seq":         func(c *jetstream.StreamConfig) { c.FirstSeq = 100 },
	} {
		t.Run(field, func(t *testing.T) {
			js, opts := external(t)
			weak := want
			weaken(&weak)
			_, err := js.CreateStream(t.Context(), weak)
			require.NoError(t, err)
			_, err = Open(bounded(t, 20*time.Second), opts)
			require.ErrorContains(t, err, "weaker than the journal needs")
			require.ErrorContains(t, err, "\n  "+field+" is ")
		})
	}
}

// Differences that nats.go can't make here are still told.
func TestEveryDifferenceIsNamedAtOnce(t *testing.T) {
	want := (&Options{Replicas: 3, MaxBytes: 64 << 20}).streamConfig()
	require.Empty(t, weaknesses(&want, &want))
	stronger := want
	stronger.Replicas, stronger.Duplicates, stronger.MaxMsgSize, stronger.MaxBytes = 5, time.Hour, -1, 1<<40
	require.Empty(t, weaknesses(&stronger, &want))
	weak := jetstream.StreamConfig{
		Name: Name, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage, Sealed: true, MaxAge: 1, Replicas: 1,
		Mirror: &jetstream.StreamSource{}, AllowDirect: true, MaxMsgSize: 1, NoAck: true,
	}
	require.Len(t, weaknesses(&weak, &want), 16)
	for _, r := range requirements(&weak, &want) {
		require.NotEmpty(t, r.because, r.field)
		require.NotEmpty(t, r.do, r.field)
	}
}

func TestJournalIsEnlargedNeverShrunk(t *testing.T) {
	js, opts := external(t)
	closeLog(t, open(t, opts))
	opts.MaxBytes *= 2
	closeLog(t, open(t, opts))
	s, err := js.Stream(t.Context(), Name)
	require.NoError(t, err)
	require.EqualValues(t, 128<<20, s.CachedInfo().Config.MaxBytes)
	opts.MaxBytes /= 2
	l := open(t, opts)
	info, err := l.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 128<<20, info.MaxBytes)
}

func TestEmbeddedServerStartsAgain(t *testing.T) {
	dir := t.TempDir()
	l := open(t, embedded(dir))
	require.True(t, l.Durability().Verified)
	require.Empty(t, l.ClientURL())
	_, err := l.Append(bounded(t, 10*time.Second), confirms("a", 10)...)
	require.NoError(t, err)
	closeLog(t, l)

	l = open(t, Options{Embedded: &Embedded{Dir: dir}}) // MaxStore is remembered
	info, err := l.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, testMaxStore/10*7, info.MaxBytes)
	require.EqualValues(t, 10, info.Last)
	acks, err := l.Append(bounded(t, 10*time.Second), confirm("b"), confirm("a-3"))
	require.NoError(t, err)
	require.Equal(t, []journal.Ack{{Sequence: 11}, {Sequence: 4, Duplicate: true}}, acks)
	closeLog(t, l)

	_, err = Open(bounded(t, 10*time.Second), Options{Embedded: &Embedded{Dir: dir, MaxStore: testMaxStore / 2}})
	require.ErrorContains(t, err, "can't be lowered")
	_, err = Open(bounded(t, 10*time.Second), Options{Embedded: &Embedded{Dir: dir}, MaxBytes: testMaxStore + 1})
	require.ErrorContains(t, err, "does not fit into MaxStore")

	l = open(t, Options{Embedded: &Embedded{Dir: dir, MaxStore: 2 * testMaxStore}})
	info, err = l.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2*testMaxStore/10*7, info.MaxBytes)
	require.Len(t, all(t, l), 11)
}

func TestDataDirectoryIsOwnedByOne(t *testing.T) {
	dir := t.TempDir()
	l := open(t, embedded(dir))
	_, err := Open(bounded(t, 10*time.Second), embedded(dir))
	require.ErrorContains(t, err, "in use by another process")
	closeLog(t, l)
	open(t, embedded(dir))
}

func TestDamagedMaxStoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, maxStoreFile), []byte("lots"), 0o600))
	_, err := Open(bounded(t, 10*time.Second), embedded(dir))
	require.ErrorContains(t, err, `holds "lots"`)
}

func TestDefaultMaxStore(t *testing.T) {
	for free, want := range map[int64]int64{0: 1, 1 << 30: 1, 5 << 30: 2, 100 << 30: 50, 1 << 40: 64} {
		require.Equal(t, want<<30, defaultMaxStore(free))
	}
	free, err := freeDisk(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free)
}

// Network clients reach an embedded server, and can't take the journal away.
func TestNetworkClients(t *testing.T) {
	opts := embedded(t.TempDir())
	opts.Embedded.Listen = "127.0.0.1:0"
	opts.Logger = slog.New(slog.DiscardHandler)
	l := open(t, opts)
	require.Regexp(t, `^nats://127\.0\.0\.1:\d+$`, l.ClientURL())

	nc, err := nats.Connect(l.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	e := confirm("a")
	text, err := e.Encode()
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), e.Subject(), text)
	require.NoError(t, err)
	require.NoError(t, follow(t, l, 1, 1)[0].Err)

	denied := bounded(t, 500*time.Millisecond) // a permission shows as no answer
	require.Error(t, js.DeleteStream(denied, Name))
	second := open(t, Options{URL: l.ClientURL(), MaxBytes: 1 << 20}) // another instance
	_, err = second.Append(bounded(t, 10*time.Second), confirm("b"))
	require.NoError(t, err)
	require.Len(t, all(t, l), 2)
}

func TestPortInUse(t *testing.T) {
	opts := embedded(t.TempDir())
	opts.Embedded.Listen = "127.0.0.1:0"
	l := open(t, opts)
	taken := embedded(t.TempDir())
	taken.Embedded.Listen = l.ClientURL()[len("nats://"):]
	_, err := Open(bounded(t, 10*time.Second), taken)
	require.ErrorContains(t, err, "address already in use")
}

// A system account tells how a real server syncs.
func TestServersTellHowTheySync(t *testing.T) {
	for _, always := range []bool{true, false} {
		system := server.NewAccount("SYS")
		srv, err := server.NewServer(&server.Options{
			ServerName: "n1", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: always,
			SystemAccount: "SYS", Accounts: []*server.Account{system},
			Users: []*server.User{{Username: "operator", Password: "secret", Account: system}},
		})
		require.NoError(t, err)
		srv.Start()
		t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
		require.True(t, srv.ReadyForConnections(10*time.Second))
		nc, err := nats.Connect(srv.ClientURL(), nats.UserInfo("operator", "secret"))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		servers, err := askSync(t.Context(), nc)
		require.NoError(t, err)
		require.Len(t, servers, 1)
		require.Equal(t, always, servers[0].Data.Config.SyncAlways)
	}
}

func TestJudgeSync(t *testing.T) {
	var always, never, without serverSync
	always.Data.Config.SyncAlways = true
	never.Server.Name = "n2"
	without.Data.Disabled = true
	d, err := judgeSync([]serverSync{always, without, always})
	require.NoError(t, err)
	require.Equal(t, Durability{true, "all 2 servers sync every write"}, d)
	_, err = judgeSync([]serverSync{always, never})
	require.ErrorContains(t, err, "server n2")
	d, err = judgeSync([]serverSync{without})
	require.NoError(t, err)
	require.False(t, d.Verified)
}
