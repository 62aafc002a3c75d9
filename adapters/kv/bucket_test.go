package kv_test

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/kv"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/projector"
)

func logger(tb testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(tb.Output(), nil)) }

func TestAnyClientReadsTheBucket(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	bucket := open(t, js)
	_, err := bucket.Push(t.Context(), document("flink.prod", "job/a:1", 7, someLeader("b=2", "a=1")))
	require.NoError(t, err)
	plain, err := js.KeyValue(t.Context(), "leaders")
	require.NoError(t, err)
	e, err := plain.Get(t.Context(), "flink=2Eprod.job=2Fa=3A1")
	require.NoError(t, err)
	require.JSONEq(t, `{"sequence":7,"epoch":7,"phase":"confirmed","leader":
		{"session":"s1","candidate":"jm-1","address":"http://jm-1:8081","properties":{"a":"1","b":"2"}}}`, string(e.Value()))

	_, err = bucket.Push(t.Context(), document("flink.prod", "job/a:1", 8, nil))
	require.NoError(t, err)
	e, err = plain.Get(t.Context(), "flink=2Eprod.job=2Fa=3A1")
	require.NoError(t, err)
	require.JSONEq(t, `{"sequence":8,"epoch":8,"phase":"confirmed","leader":null}`, string(e.Value()))
	got, ok, err := bucket.Get(t.Context(), "flink.prod", "job/a:1")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, kv.Leader{Sequence: 8, Epoch: 8, Phase: "confirmed"}, got)
	_, ok, err = bucket.Get(t.Context(), "flink.prod", "other")
	require.NoError(t, err)
	require.False(t, ok)
}

func TestPhaseAndEpochAreContent(t *testing.T) {
	_, url := testenv.NATS(t)
	bucket := open(t, connect(t, url))
	doc := document("g", "c", 7, someLeader())
	push(t, bucket, doc)
	e := doc.Entries["c"]
	e.Phase = "vacant"
	doc.Entries["c"] = e
	require.Equal(t, []string{"c"}, push(t, bucket, doc).Changed)
	require.False(t, push(t, bucket, doc).Wrote)
}

func push(t *testing.T, bucket *kv.Bucket, doc *projector.Document) projector.Receipt {
	t.Helper()
	receipt, err := bucket.Push(t.Context(), doc)
	require.NoError(t, err)
	return receipt
}

func TestTextOfOthersIsWrittenOver(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	bucket := open(t, js)
	plain, err := js.KeyValue(t.Context(), kv.Name)
	require.NoError(t, err)
	_, err = plain.Put(t.Context(), "g.c", []byte("not JSON"))
	require.NoError(t, err)
	require.True(t, push(t, bucket, document("g", "c", 7, someLeader())).Wrote)
}

func TestDocumentOfSeveralComponentsIsRefused(t *testing.T) {
	_, url := testenv.NATS(t)
	bucket := open(t, connect(t, url))
	doc := document("g", "c", 7, someLeader())
	doc.Entries["d"] = projector.Entry{}
	_, err := bucket.Push(t.Context(), doc)
	require.ErrorIs(t, err, projector.ErrPermanent)
	doc.Component = "e"
	_, err = bucket.Push(t.Context(), doc)
	require.ErrorIs(t, err, projector.ErrPermanent)
}

func TestTooLargeIsPermanent(t *testing.T) {
	_, url := testenv.NATS(t)
	bucket := open(t, connect(t, url))
	_, err := bucket.Push(t.Context(), document("g", "c", 7, someLeader("p="+string(make([]byte, 2<<20)))))
	require.ErrorIs(t, err, projector.ErrPermanent)
}

func TestOpenRefusesABucketThatForgets(t *testing.T) {
	for name, config := range map[string]jetstream.KeyValueConfig{
		"memory": {Bucket: kv.Name, Storage: jetstream.MemoryStorage},
		"age":    {Bucket: kv.Name, TTL: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := testenv.NATS(t)
			js := connect(t, url)
			_, err := js.CreateKeyValue(t.Context(), config)
			require.NoError(t, err)
			_, err = kv.Open(t.Context(), js, kv.Options{Logger: logger(t)})
			require.ErrorContains(t, err, "the fence has to")
		})
	}
}

func TestOpenTakesABucketThatIsThere(t *testing.T) {
	_, url := testenv.NATS(t)
	js := connect(t, url)
	_, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: kv.Name, History: 3})
	require.NoError(t, err)
	bucket := open(t, js)
	push(t, bucket, document("g", "c", 7, someLeader()))
	stream, err := js.Stream(t.Context(), "KV_leaders")
	require.NoError(t, err)
	require.True(t, stream.CachedInfo().Config.AllowAtomicPublish, "batches are allowed on it from now on")
	push(t, open(t, js), document("g", "c", 8, someLeader()))
}

func TestOpenNeedsALogger(t *testing.T) {
	_, url := testenv.NATS(t)
	_, err := kv.Open(t.Context(), connect(t, url), kv.Options{})
	require.Error(t, err)
}

func TestClosedBucketRefuses(t *testing.T) {
	_, url := testenv.NATS(t)
	bucket := open(t, connect(t, url))
	require.NoError(t, bucket.Close(t.Context()))
	_, err := bucket.Push(t.Context(), document("g", "c", 7, someLeader()))
	require.Error(t, err)
	require.NotErrorIs(t, err, projector.ErrUnknownOutcome)
}

// pushAll pushes documents of n components at once, and returns what came of each.
func pushAll(tb testing.TB, bucket *kv.Bucket, n int, sequence uint64, fresh bool) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			doc := document("g", fmt.Sprintf("c%d", i), sequence, someLeader())
			doc.Fresh = fresh
			_, errs[i] = bucket.Push(tb.Context(), doc)
		})
	}
	all.Wait()
	return errs
}

func TestKeysThatChangeAtOnceAreAllWritten(t *testing.T) {
	const keys = 2500
	_, url := testenv.NATS(t)
	bucket := open(t, connect(t, url))
	require.NoError(t, errors.Join(pushAll(t, bucket, keys, 1, false)...))
	require.NoError(t, errors.Join(pushAll(t, bucket, keys, 2, false)...), "on the revisions of the acknowledgements")
	require.NoError(t, errors.Join(pushAll(t, open(t, connect(t, url)), keys, 2, false)...))
	for i := range keys {
		l, ok, err := bucket.Get(t.Context(), "g", fmt.Sprintf("c%d", i))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, uint64(2), l.Sequence)
	}
}

// TestOneConflictFailsOneWrite has somebody else change some of the keys: the batches that they are in are refused.
func TestOneConflictFailsOneWrite(t *testing.T) {
	const keys = 300
	_, url := testenv.NATS(t)
	js := connect(t, url)
	bucket := open(t, js)
	require.NoError(t, errors.Join(pushAll(t, bucket, keys, 1, false)...))
	plain, err := js.KeyValue(t.Context(), kv.Name)
	require.NoError(t, err)
	theirs := map[int]bool{3: true, 150: true, 299: true}
	for i := range theirs {
		_, err := plain.Put(t.Context(), fmt.Sprintf("g.c%d", i), []byte(`{"sequence":1}`))
		require.NoError(t, err)
	}
	for i, err := range pushAll(t, bucket, keys, 2, false) {
		if theirs[i] {
			require.ErrorIs(t, err, projector.ErrConflict)
		} else {
			require.NoError(t, err)
		}
	}
	require.NoError(t, errors.Join(pushAll(t, bucket, keys, 2, false)...), "a key that conflicted is read again")
}

// TestConnectionBreaksInMidBatch breaks the connection again and again while many keys are written. Whatever a push
// said has to be true.
func TestConnectionBreaksInMidBatch(t *testing.T) {
	const keys = 200
	server, url := testenv.NATS(t)
	proxy := testenv.NewTCPProxy(t, server.Addr().String())
	bucket := open(t, connect(t, "nats://"+proxy.Addr()))
	reader := open(t, connect(t, url))
	for round := range uint64(8) {
		sequence := round + 1
		cut := make(chan struct{})
		go func() {
			defer close(cut)
			proxy.Cut()
			proxy.Resume()
		}()
		errs := pushAll(t, bucket, keys, sequence, true)
		<-cut
		for i, err := range errs {
			if err == nil {
				l, _, getErr := reader.Get(t.Context(), "g", fmt.Sprintf("c%d", i))
				require.NoError(t, getErr)
				require.Equal(t, sequence, l.Sequence, "it was acknowledged")
			}
		}
		for attempt := pushAll(t, bucket, keys, sequence, true); errors.Join(attempt...) != nil; {
			attempt = pushAll(t, bucket, keys, sequence, true)
		}
	}
}

// TestWritesShareBatches: a batch is synced once. What is written while nothing else is under way goes alone, at once.
func TestWritesShareBatches(t *testing.T) {
	const keys = 256
	_, url := testenv.NATS(t)
	js := connect(t, url)
	bucket := open(t, js)
	push(t, bucket, document("g", "alone", 1, someLeader()))
	require.NoError(t, errors.Join(pushAll(t, bucket, keys, 1, false)...))
	require.NoError(t, errors.Join(pushAll(t, bucket, keys, 2, false)...))
	stream, err := js.Stream(t.Context(), "KV_leaders")
	require.NoError(t, err)
	batches := map[string]int{}
	for i := range keys {
		m, err := stream.GetLastMsgForSubject(t.Context(), fmt.Sprintf("$KV.leaders.g.c%d", i))
		require.NoError(t, err)
		batches[m.Header.Get("Nats-Batch-Id")]++
	}
	require.Less(t, len(batches)+batches[""], keys/4, "commits for %d keys: %v", keys, batches)
	m, err := stream.GetLastMsgForSubject(t.Context(), "$KV.leaders.g.alone")
	require.NoError(t, err)
	require.Empty(t, m.Header.Get("Nats-Batch-Id"))
}

// BenchmarkPush compares with conditional writes to the same bucket by a plain client. Each operation changes all keys.
func BenchmarkPush(b *testing.B) {
	for _, keys := range []int{1, 256} {
		b.Run(fmt.Sprintf("keys=%d/bucket", keys), func(b *testing.B) {
			_, url := testenv.NATS(b)
			bucket := open(b, connect(b, url))
			sequence := uint64(1)
			require.NoError(b, errors.Join(pushAll(b, bucket, keys, sequence, false)...))
			for b.Loop() {
				sequence++
				require.NoError(b, errors.Join(pushAll(b, bucket, keys, sequence, false)...))
			}
			b.ReportMetric(float64(b.N*keys)/b.Elapsed().Seconds(), "writes/s")
		})
		b.Run(fmt.Sprintf("keys=%d/plain", keys), func(b *testing.B) {
			_, url := testenv.NATS(b)
			js := connect(b, url)
			open(b, js)
			plain, err := js.KeyValue(b.Context(), kv.Name)
			require.NoError(b, err)
			revisions := make([]uint64, keys)
			for b.Loop() {
				updateAll(b, plain, revisions)
			}
			b.ReportMetric(float64(b.N*keys)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

func updateAll(b *testing.B, plain jetstream.KeyValue, revisions []uint64) {
	var all sync.WaitGroup
	errs := make([]error, len(revisions))
	text := []byte(`{"sequence":7,"epoch":7,"phase":"confirmed","leader":{"session":"s1","candidate":"jm-1","address":"http://jm-1:8081"}}`)
	for i := range revisions {
		all.Go(func() { revisions[i], errs[i] = plain.Update(b.Context(), fmt.Sprintf("g.c%d", i), text, revisions[i]) })
	}
	all.Wait()
	require.NoError(b, errors.Join(errs...))
}
