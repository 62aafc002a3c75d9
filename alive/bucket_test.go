package alive_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/policy"
)

const limit = 30 * time.Second

var k1 = alive.Key{Group: "flink.prod", Candidate: "jm/1"}

func beat(incarnation string) alive.Heartbeat {
	return alive.Heartbeat{Incarnation: incarnation, Lease: policy.Duration(15 * time.Second)}
}

func tombstone(until uint64) alive.Heartbeat {
	return alive.Heartbeat{Incarnation: "1", Lease: policy.Duration(15 * time.Second), Until: until}
}

func logger(tb testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(tb.Output(), nil)) }

func connect(tb testing.TB, url string) jetstream.JetStream {
	tb.Helper()
	conn, err := nats.Connect(url, nats.ReconnectWait(10*time.Millisecond), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
	require.NoError(tb, err)
	tb.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(tb, err)
	return js
}

func open(tb testing.TB, js jetstream.JetStream, replicas int) *alive.Bucket {
	tb.Helper()
	b, err := alive.Open(tb.Context(), js, alive.Options{Replicas: replicas, Logger: logger(tb)})
	require.NoError(tb, err)
	return b
}

// onBoth runs a test with a bucket on one node, and with one on three.
func onBoth(t *testing.T, test func(t *testing.T, b *alive.Bucket, js jetstream.JetStream)) {
	t.Run("one", func(t *testing.T) {
		_, url := testenv.NATS(t)
		js := connect(t, url)
		test(t, open(t, js, 1), js)
	})
	t.Run("three", func(t *testing.T) {
		js := connect(t, testenv.NATSCluster(t, 3).URL())
		test(t, open(t, js, 3), js)
	})
}

// conflict is the error of a write that was refused, which must be one.
func conflict(t *testing.T, err error) *alive.Conflict {
	t.Helper()
	c, ok := errors.AsType[*alive.Conflict](err)
	require.True(t, ok, "%v", err)
	return c
}

func TestARenewalIsOnConditionOfTheRevision(t *testing.T) {
	onBoth(t, func(t *testing.T, b *alive.Bucket, _ jetstream.JetStream) {
		ctx := t.Context()
		_, err := b.Renew(ctx, k1, beat("1"), 7)
		require.Nil(t, conflict(t, err).Found)
		require.ErrorContains(t, err, "the liveness key of jm/1 in flink.prod is gone")
		found, err := b.Get(ctx, k1)
		require.NoError(t, err)
		require.Nil(t, found)

		first, err := b.Renew(ctx, k1, beat("1"), 0)
		require.NoError(t, err)
		require.Greater(t, first, uint64(1_700_000_000_000_000), "revisions begin with the time")
		require.Less(t, first, uint64(1)<<53, "they are numbers to JSON")
		second, err := b.Renew(ctx, k1, beat("1"), first)
		require.NoError(t, err)
		require.Greater(t, second, first)
		for _, revision := range []uint64{0, first, second + 1} {
			_, err = b.Renew(ctx, k1, beat("2"), revision)
			require.Equal(t, &alive.Entry{Heartbeat: beat("1"), Revision: second}, conflict(t, err).Found)
		}
		found, err = b.Get(ctx, k1)
		require.NoError(t, err)
		require.Equal(t, &alive.Entry{Heartbeat: beat("1"), Revision: second}, found)
	})
}

func TestATombstoneIsOnConditionOfTheRevision(t *testing.T) {
	onBoth(t, func(t *testing.T, b *alive.Bucket, _ jetstream.JetStream) {
		ctx := t.Context()
		expire := func(until, revision uint64) bool {
			written, err := b.Expire(ctx, k1, tombstone(until), revision)
			require.NoError(t, err)
			return written
		}
		require.False(t, expire(9, 7))
		first, err := b.Renew(ctx, k1, beat("1"), 0)
		require.NoError(t, err)
		second, err := b.Renew(ctx, k1, beat("1"), first)
		require.NoError(t, err)
		require.False(t, expire(9, first), "it has renewed")
		require.True(t, expire(9, second))
		require.True(t, expire(9, second), "it stands there already")
		require.False(t, expire(10, second), "that is another one")
		_, err = b.Renew(ctx, k1, beat("1"), second)
		require.Equal(t, tombstone(9), conflict(t, err).Found.Heartbeat)
	})
}

// TestATombstoneOfNoKey is the first thing that a bucket has after it was lost.
func TestATombstoneOfNoKey(t *testing.T) {
	_, url := testenv.NATS(t)
	b := open(t, connect(t, url), 1)
	written, err := b.Expire(t.Context(), k1, tombstone(9), 0)
	require.NoError(t, err)
	require.True(t, written)
	_, err = b.Renew(t.Context(), k1, beat("1"), 0)
	require.Equal(t, tombstone(9), conflict(t, err).Found.Heartbeat)
}

// TestADeletedKeyIsNone has somebody delete it with a client of key-value buckets, which leaves a marker.
func TestADeletedKeyIsNone(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	b := open(t, js, 1)
	ctx := t.Context()
	first, err := b.Renew(ctx, k1, beat("1"), 0)
	require.NoError(t, err)
	plain, err := js.KeyValue(ctx, alive.Name)
	require.NoError(t, err)
	require.NoError(t, plain.Delete(ctx, "flink=2Eprod.jm=2F1"))
	found, err := b.Get(ctx, k1)
	require.NoError(t, err)
	require.Nil(t, found)
	_, err = b.Renew(ctx, k1, beat("1"), first)
	require.Nil(t, conflict(t, err).Found)
	_, err = b.Renew(ctx, k1, beat("1"), 0)
	require.NoError(t, err)
}

// TestALostBucketIsMadeAnew by whoever needs it first, with revisions that the old one never had.
func TestALostBucketIsMadeAnew(t *testing.T) {
	for name, use := range map[string]func(*alive.Bucket, uint64) error{
		"renew": func(b *alive.Bucket, revision uint64) error {
			_, err := b.Renew(t.Context(), k1, beat("1"), revision)
			return err
		},
		"expire": func(b *alive.Bucket, revision uint64) error {
			_, err := b.Expire(t.Context(), k1, tombstone(9), revision)
			return err
		},
		"get": func(b *alive.Bucket, _ uint64) error {
			found, err := b.Get(t.Context(), k1)
			require.Nil(t, found)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := testenv.NATS(t)
			js := connect(t, url)
			b := open(t, js, 1)
			old, err := b.Renew(t.Context(), k1, beat("1"), 0)
			require.NoError(t, err)
			require.NoError(t, js.DeleteStream(t.Context(), "KV_alive"))
			if err = use(b, old); name == "renew" {
				require.Nil(t, conflict(t, err).Found)
			} else {
				require.NoError(t, err)
			}
			revision, err := b.Renew(t.Context(), k1, beat("1"), 0)
			require.NoError(t, err)
			require.Greater(t, revision, old)
		})
	}
}

// TestABucketThatIsThereIsMended has it be made by somebody who did not know what leases need.
func TestABucketThatIsThereIsMended(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	_, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: alive.Name, History: 5, TTL: time.Second})
	require.NoError(t, err)
	open(t, js, 1)
	stream, err := js.Stream(t.Context(), "KV_alive")
	require.NoError(t, err)
	have := stream.CachedInfo().Config
	require.False(t, have.AllowDirect)
	require.Equal(t, int64(1), have.MaxMsgsPerSubject)
	require.Equal(t, time.Hour, have.MaxAge)
}

// faulty is a JetStream whose next write fails: it is carried out, or not.
type faulty struct {
	jetstream.JetStream
	fails, applied bool
	with           error
}

func (f *faulty) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if !f.fails {
		return f.JetStream.PublishMsg(ctx, m, opts...)
	}
	f.fails = false
	if f.applied {
		if _, err := f.JetStream.PublishMsg(ctx, m, opts...); err != nil {
			return nil, err
		}
	}
	return nil, f.with
}

func (f *faulty) fail(applied bool, with error) { f.fails, f.applied, f.with = true, applied, with }

// TestWritesThatFail has every write fail in every way: the error says whether it may have been carried out, and trying
// again is harmless.
func TestWritesThatFail(t *testing.T) {
	_, url := testenv.NATS(t)
	f := &faulty{JetStream: connect(t, url)}
	b, err := alive.Open(t.Context(), f, alive.Options{Logger: logger(t)})
	require.NoError(t, err)
	key := alive.Key{Group: "g"}
	for _, c := range []struct {
		name    string
		applied bool
		with    error
		unknown bool
	}{
		{"time-out, applied", true, nats.ErrTimeout, true},
		{"time-out, not applied", false, nats.ErrTimeout, true},
		{"store failed", false, &jetstream.APIError{Code: 503, ErrorCode: 10077}, true},
		{"refused", false, &jetstream.APIError{Code: 503, ErrorCode: 10008}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			key.Candidate = c.name
			f.fail(c.applied, c.with)
			_, err := b.Renew(t.Context(), key, beat("1"), 0)
			require.ErrorIs(t, err, c.with)
			require.Equal(t, c.unknown, errors.Is(err, alive.ErrUnknownOutcome))
			revision, err := b.Renew(t.Context(), key, beat("1"), 0)
			if c.applied {
				found := conflict(t, err).Found
				require.Equal(t, beat("1"), found.Heartbeat)
				revision, err = found.Revision, nil
			}
			require.NoError(t, err)

			f.fail(c.applied, c.with)
			_, err = b.Expire(t.Context(), key, tombstone(9), revision)
			require.ErrorIs(t, err, c.with)
			require.Equal(t, c.unknown, errors.Is(err, alive.ErrUnknownOutcome))
			written, err := b.Expire(t.Context(), key, tombstone(9), revision)
			require.NoError(t, err)
			require.True(t, written)
		})
	}
	t.Run("disconnected", func(t *testing.T) {
		f.Conn().Close()
		_, err := b.Renew(t.Context(), key, beat("1"), 0)
		require.ErrorContains(t, err, "nothing was sent")
		require.NotErrorIs(t, err, alive.ErrUnknownOutcome)
	})
}

// TestAWriteThatIsUnderWay is refused by the server with a code of its own, and is no conflict.
func TestAWriteThatIsUnderWay(t *testing.T) {
	_, url := testenv.NATS(t)
	f := &faulty{JetStream: connect(t, url)}
	b, err := alive.Open(t.Context(), f, alive.Options{Logger: logger(t)})
	require.NoError(t, err)
	revision, err := b.Renew(t.Context(), k1, beat("1"), 0)
	require.NoError(t, err)
	f.fail(false, &jetstream.APIError{Code: 400, ErrorCode: 10164})
	_, err = b.Renew(t.Context(), k1, beat("1"), revision)
	require.ErrorContains(t, err, "try again")
	_, ok := errors.AsType[*alive.Conflict](err)
	require.False(t, ok)
}

func TestAnExistingBucketIsOnlyUsed(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	b, err := alive.Open(t.Context(), js, alive.Options{Existing: true, Logger: logger(t)})
	require.NoError(t, err)
	key := alive.Key{Group: "g", Candidate: "c"}
	_, err = b.Renew(t.Context(), key, beat("1"), 0)
	require.ErrorContains(t, err, "which a journald makes")
	require.NotErrorIs(t, err, alive.ErrUnknownOutcome)
	_, err = js.Stream(t.Context(), "KV_"+alive.Name)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "none was made")

	open(t, js, 1)
	revision, err := b.Renew(t.Context(), key, beat("1"), 0)
	require.NoError(t, err)
	_, err = b.Renew(t.Context(), key, beat("1"), revision)
	require.NoError(t, err)
}
