package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

func confirmOf(group, id string) journal.Event {
	e := confirm(id)
	e.Group = group
	return e
}

func takeover(id string) journal.Event {
	return journal.Event{
		ID: id, Source: "projector/j", Group: "_", Time: time.Unix(1700000000, 0).UTC(), Data: &journal.Takeover{Instance: "j"},
	}
}

// groupTold is one call of FollowGroup that goes on.
type groupTold struct {
	t     *testing.T
	ids   chan string // of records; "current" where that begins
	ended chan error
	stop  context.CancelFunc
}

func followGroup(t *testing.T, l *Log, group string) *groupTold {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	g := &groupTold{t, make(chan string, 10000), make(chan error, 1), cancel}
	go func() {
		was := false
		g.ended <- l.FollowGroup(ctx, group, func(records []journal.Record, current bool) error {
			for _, r := range records {
				g.ids <- r.Event.ID
			}
			if current && !was {
				g.ids <- "current"
			}
			was = current
			return nil
		})
	}()
	t.Cleanup(cancel)
	return g
}

func (g *groupTold) hears(want ...string) {
	g.t.Helper()
	for _, id := range want {
		select {
		case got := <-g.ids:
			require.Equal(g.t, id, got)
		case err := <-g.ended:
			require.FailNow(g.t, "following ended", "%v", err)
		case <-time.After(30 * time.Second):
			require.FailNow(g.t, "it never came", id)
		}
	}
}

func TestFollowGroup(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		ctx := bounded(t, time.Minute)
		other := followGroup(t, l, "none")
		other.hears("current")
		_, err := l.Append(ctx, takeover("t1"), confirmOf("flink", "a"), confirmOf("flink-2", "x"), confirmOf("flink", "b"))
		require.NoError(t, err)
		g := followGroup(t, l, "flink")
		g.hears("t1", "a", "b", "current")
		_, err = l.Append(ctx, confirmOf("flink-2", "y"), confirmOf("flink", "c"), takeover("t2"), confirmOf("fl.ink", "z"))
		require.NoError(t, err)
		g.hears("c", "t2")
		other.hears("t1", "t2")
		followGroup(t, l, "fl.ink").hears("t1", "t2", "z", "current")
		g.stop()
		require.ErrorIs(t, <-g.ended, context.Canceled)
	})
}

func TestFollowGroupEndsWithItsFunction(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	enough := errors.New("enough")
	require.Equal(t, enough, l.FollowGroup(t.Context(), "flink", func([]journal.Record, bool) error { return enough }))
}

// A consumer that is deleted, and a leader that changes, interrupt it; nothing is missed and nothing comes twice.
func TestFollowGroupGoesOn(t *testing.T) {
	for name, disturb := range map[string]func(t *testing.T, l *Log){
		"consumer deleted": deleteConsumers,
		"leader changes": func(t *testing.T, l *Log) {
			_, err := l.nc.RequestWithContext(bounded(t, 10*time.Second), "$JS.API.STREAM.LEADER.STEPDOWN."+Name, nil)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := three(t)[0]
			ctx := bounded(t, time.Minute)
			g := followGroup(t, l, "flink")
			g.hears("current")
			for round := range 2 {
				var want []string
				for n := range 20 {
					id := fmt.Sprintf("%d-%d", round, n)
					want = append(want, id)
					_, err := l.Append(ctx, confirmOf("flink", id), confirmOf("other", id))
					require.NoError(t, err)
					if n == 10 {
						disturb(t, l)
					}
				}
				g.hears(want...)
			}
		})
	}
}

func deleteConsumers(t *testing.T, l *Log) {
	ctx := bounded(t, 10*time.Second)
	names := l.stream.ConsumerNames(ctx)
	for name := range names.Name() {
		if err := l.stream.DeleteConsumer(ctx, name); !errors.Is(err, jetstream.ErrConsumerNotFound) {
			require.NoError(t, err)
		}
	}
	require.NoError(t, names.Err())
}

// What the server sent and what did not come of it shows in its count, with the next message or the next heartbeat.
func TestAMessageThatIsLostIsNoticed(t *testing.T) {
	reply := func(count int) *nats.Msg {
		return &nats.Msg{Reply: fmt.Sprintf("$JS.ACK.LEADERSHIP.c.1.%d.%d.1700000000123456789.0", 10*count, count), Data: []byte("{}")}
	}
	beat := func(count string) *nats.Msg {
		return &nats.Msg{Header: nats.Header{"Status": {"100"}, "Nats-Last-Consumer": {count}}}
	}
	for name, c := range map[string]struct {
		messages []*nats.Msg
		passed   int
		lost     string
	}{
		"nothing":                {[]*nats.Msg{beat("0"), reply(1), beat("1"), beat(""), reply(2), beat("2")}, 2, ""},
		"one in between":         {[]*nats.Msg{reply(1), reply(3), reply(4)}, 1, "message 3 of the consumer came after 1"},
		"the first":              {[]*nats.Msg{reply(2), reply(3)}, 0, "message 2 of the consumer came after 0"},
		"the last":               {[]*nats.Msg{reply(1), reply(2), beat("3")}, 2, "message 3 of the consumer did not come, 2 did"},
		"none, but one is twice": {[]*nats.Msg{reply(1), reply(1)}, 1, "message 1 of the consumer came after 1"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			r := &reader{ctx: t.Context(), fail: cancel, batches: make(chan []journal.Record, 10), filtered: true, sub: &nats.Subscription{}}
			for _, m := range c.messages {
				r.handle(m)
			}
			close(r.batches)
			passed := 0
			for batch := range r.batches {
				passed += len(batch)
			}
			require.Equal(t, c.passed, passed)
			if c.lost == "" {
				require.NoError(t, context.Cause(ctx))
			} else {
				require.ErrorContains(t, context.Cause(ctx), c.lost)
			}
		})
	}
}

func TestFollowGroupBeyondTheEnd(t *testing.T) {
	t.Parallel()
	l := open(t, embedded(t.TempDir()))
	_, err := l.Append(t.Context(), confirmOf("flink", "a"))
	require.NoError(t, err)
	f := &groupFollower{log: l, last: 9, subjects: []string{journal.Subjects("flink")}}
	err = f.session(t.Context())
	final, ok := errors.AsType[*finalError](err)
	require.True(t, ok, err)
	require.ErrorIs(t, final.err, journal.ErrHole)
}

func TestAnExistingStreamIsOnlyUsed(t *testing.T) {
	js, opts := external(t)
	quiet := slog.New(slog.DiscardHandler)
	existing := Options{URL: opts.URL, Existing: true, Logger: quiet}
	_, err := Open(bounded(t, 30*time.Second), existing)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	require.ErrorContains(t, err, "start a journald first")
	_, err = js.Stream(t.Context(), Name)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "none was made")

	open(t, opts)
	before, err := js.Stream(t.Context(), Name)
	require.NoError(t, err)
	l := open(t, existing)
	acks, err := l.Append(bounded(t, 10*time.Second), confirms("a", 3)...)
	require.NoError(t, err)
	require.EqualValues(t, 3, acks[2].Sequence)
	require.Equal(t, before.CachedInfo().Config, l.stream.CachedInfo().Config)

	weak := before.CachedInfo().Config
	weak.Duplicates = time.Second
	_, err = js.UpdateStream(t.Context(), weak)
	require.NoError(t, err)
	_, err = Open(bounded(t, 10*time.Second), existing)
	require.ErrorContains(t, err, "duplicate_window")
}

// A user who may only read is told so, and nothing is tried again.
func TestAnAppendThatIsNotAllowed(t *testing.T) {
	srv, err := server.NewServer(&server.Options{
		Port: server.RANDOM_PORT, Host: "127.0.0.1", JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, SyncAlways: true,
		MaxPayload: 2 * maxMessage,
		Users: []*server.User{{Username: "all", Password: "x"}, {Username: "reader", Password: "x", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{subjects}},
		}}},
	})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(30*time.Second))
	address := srv.Addr().String()
	all := open(t, Options{URL: "nats://all:x@" + address, MaxBytes: 64 << 20})
	reader := open(t, Options{URL: "nats://reader:x@" + address, Existing: true})
	for _, events := range [][]journal.Event{{confirm("a")}, confirms("b", 3)} {
		_, err = reader.Append(bounded(t, 30*time.Second), events...)
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
		require.ErrorContains(t, err, "the NATS user may not do this")
	}
	_, err = all.Append(bounded(t, 10*time.Second), confirmOf("flink", "c"))
	require.NoError(t, err)
	followGroup(t, reader, "flink").hears("c", "current")
}
