package stream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

// forgetIDs leaves a log as after a restart: what it stored is known to the server alone.
func forgetIDs(l *Log) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.recent = newRecent()
}

func TestAppendOfNothing(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	acks, err := l.Append(t.Context())
	require.NoError(t, err)
	require.Empty(t, acks)
}

func TestDuplicatesNameTheFirst(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		ctx := bounded(t, time.Minute)
		_, err := l.Append(ctx, confirm("a"), confirm("b"))
		require.NoError(t, err)

		acks, err := l.Append(ctx, confirm("b"))
		require.NoError(t, err)
		require.Equal(t, []journal.Ack{{Sequence: 2, Duplicate: true}}, acks)

		// known ones, a new one, and one twice in the same call
		acks, err = l.Append(ctx, confirm("b"), confirm("c"), confirm("a"), confirm("c"), confirm("d"))
		require.NoError(t, err)
		require.Equal(t, []journal.Ack{
			{Sequence: 2, Duplicate: true}, {Sequence: 3}, {Sequence: 1, Duplicate: true}, {Sequence: 3, Duplicate: true}, {Sequence: 4},
		}, acks)
		require.Len(t, all(t, l), 4)
	})
}

// What another process stored is not in our memory: the server refuses the batch.
func TestDuplicatesOfAnotherProcess(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		ctx := bounded(t, time.Minute)
		_, err := l.Append(ctx, confirms("a", 5)...)
		require.NoError(t, err)
		forgetIDs(l)

		acks, err := l.Append(ctx, confirm("a-3"))
		require.NoError(t, err)
		require.Equal(t, []journal.Ack{{Sequence: 4, Duplicate: true}}, acks)
		forgetIDs(l)

		acks, err = l.Append(ctx, confirm("x"), confirm("a-1"), confirm("y"), confirm("a-4"))
		require.NoError(t, err)
		require.Equal(t, []journal.Ack{{Sequence: 6}, {Sequence: 2, Duplicate: true}, {Sequence: 7}, {Sequence: 5, Duplicate: true}}, acks)

		// the same id under another component is the same event too
		moved := confirm("a-2")
		moved.Component = "dispatcher"
		acks, err = l.Append(ctx, moved, confirm("z"))
		require.NoError(t, err)
		require.Equal(t, []journal.Ack{{Sequence: 3, Duplicate: true}, {Sequence: 8}}, acks)
		require.Len(t, all(t, l), 8)
	})
}

func TestBatchIsAllOrNothing(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		ctx := bounded(t, time.Minute)
		bad := confirm("b")
		bad.ID = "\xff" // not UTF-8: can't be encoded
		_, err := l.Append(ctx, confirm("a"), bad)
		require.ErrorIs(t, err, journal.ErrInvalid)
		require.ErrorContains(t, err, "event 2 of 2")

		big := confirm("c")
		big.Data.(*journal.Confirm).Address = strings.Repeat("x", journal.MaxSize)
		_, err = l.Append(ctx, confirm("a"), big)
		require.ErrorIs(t, err, journal.ErrInvalid)

		_, err = l.Append(ctx, confirm("a"), journal.Event{ID: "x", Source: "s"})
		require.ErrorIs(t, err, journal.ErrInvalid)

		_, err = l.Append(ctx, confirms("d", 1001)...)
		require.ErrorIs(t, err, journal.ErrInvalid)
		require.ErrorContains(t, err, "at most 1000")

		large := confirms("e", 300)
		for i := range large {
			large[i].Data.(*journal.Confirm).Address = strings.Repeat("x", 60_000)
		}
		_, err = l.Append(ctx, large...)
		require.ErrorIs(t, err, journal.ErrInvalid)
		require.ErrorContains(t, err, "bytes at once")
		require.Empty(t, all(t, l))

		acks, err := l.Append(ctx, confirms("f", 1000)...)
		require.NoError(t, err)
		require.EqualValues(t, 1, acks[0].Sequence)
		require.EqualValues(t, 1000, acks[999].Sequence)
		acks, err = l.Append(ctx, large[:250]...)
		require.NoError(t, err)
		require.EqualValues(t, 1250, acks[249].Sequence)
	})
}

// Ids that a header line would change are still told apart.
func TestHostileIDsAreToldApart(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	ids := []string{"a", "a ", " a", "a\n", "a\r", "a\r\n", "a%0D%0A", "a%20", "a\t", "ä", "a:b", "a\x00", "a\nNats-Msg-Id: b"}
	for i, id := range ids {
		acks, err := l.Append(bounded(t, 10*time.Second), confirm(id))
		require.NoError(t, err)
		require.Equal(t, []journal.Ack{{Sequence: uint64(i + 1)}}, acks, "%q", id)
	}
	for i, r := range all(t, l) {
		require.Equal(t, ids[i], r.Event.ID)
	}
}

// 256 callers at once, every fourth event one that others append too, some calls with several events, ids known to the
// server alone among them: each event is stored once, and every ack is true.
func TestGroupCommit(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		const callers, each = 256, 8
		ctx := bounded(t, time.Minute)
		_, err := l.Append(ctx, confirms("shared", 8)...)
		require.NoError(t, err)
		forgetIDs(l)

		var mu sync.Mutex
		acked := map[string][]journal.Ack{}
		var running sync.WaitGroup
		errs := make(chan error, callers*each)
		for c := range callers {
			running.Go(func() {
				for i := range each {
					events := []journal.Event{confirm(fmt.Sprintf("own-%d-%d", c, i))}
					switch i % 4 {
					case 1:
						events = []journal.Event{confirm(fmt.Sprintf("shared-%d", (c+i)%16))}
					case 2:
						events = append(events, confirm(fmt.Sprintf("also-%d-%d", c, i)), confirm(fmt.Sprintf("shared-%d", i)))
					}
					acks, err := l.Append(ctx, events...)
					if err != nil {
						errs <- err
						return
					}
					mu.Lock()
					for j, a := range acks {
						acked[events[j].ID] = append(acked[events[j].ID], a)
					}
					mu.Unlock()
				}
			})
		}
		running.Wait()
		require.Empty(t, errs)
		requireTrue(t, l, acked)
	})
}

// requireTrue checks that every ack names its event, that one ack of each event is the first, and that the journal has
// each event once.
func requireTrue(t *testing.T, l *Log, acked map[string][]journal.Ack) {
	t.Helper()
	at := map[string]uint64{}
	for _, r := range all(t, l) {
		require.NoError(t, r.Err)
		require.Zero(t, at[r.Event.ID], "%s is stored twice", r.Event.ID)
		at[r.Event.ID] = r.Sequence
	}
	for id, acks := range acked {
		require.NotZero(t, at[id], "%s is acknowledged and lost", id)
		first := 0
		for _, a := range acks {
			require.Equal(t, at[id], a.Sequence, id)
			if !a.Duplicate {
				first++
			}
		}
		require.LessOrEqual(t, first, 1, id)
	}
}

// While one commit is under way the others gather: a few commits hold what 256 callers append at once.
func TestCallersShareCommits(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	ctx := bounded(t, time.Minute)
	started, proceed := make(chan struct{}), make(chan struct{})
	var sizes []int
	send := func(batch []*request) {
		sizes = append(sizes, len(batch))
		if len(sizes) == 1 {
			close(started)
			<-proceed
		}
		l.send(batch)
	}
	var requests []*request
	for i := range 256 {
		r, err := newRequest(ctx, []journal.Event{confirm(fmt.Sprint(i))})
		require.NoError(t, err)
		require.NoError(t, l.queue.add(r, send))
		requests = append(requests, r)
		if i == 0 {
			<-started
		}
	}
	close(proceed)
	for i, r := range requests {
		<-r.done
		require.NoError(t, r.err)
		require.Equal(t, []journal.Ack{{Sequence: uint64(i + 1)}}, r.acks(), "in the order of the calls")
	}
	l.queue.sender.Wait()
	require.Equal(t, []int{1, 255}, sizes)
}

func TestAbandonedBeforeItIsSent(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	started, proceed := make(chan struct{}), make(chan struct{})
	first, err := newRequest(t.Context(), []journal.Event{confirm("first")})
	require.NoError(t, err)
	require.NoError(t, l.queue.add(first, func(batch []*request) {
		if batch[0] == first {
			close(started)
			<-proceed
		}
		l.send(batch)
	}))
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Append(ctx, confirm("second"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "nothing was sent")
	close(proceed)
	<-first.done
	_, err = l.Append(bounded(t, 10*time.Second), confirm("third"))
	require.NoError(t, err)
	records := all(t, l)
	require.Len(t, records, 2)
	require.Equal(t, "third", records[1].Event.ID)
}

func TestFullJournal(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		ctx := bounded(t, time.Minute)
		cfg := l.stream.CachedInfo().Config
		cfg.MaxBytes = 64 << 10
		_, err := l.js.UpdateStream(ctx, cfg)
		require.NoError(t, err)

		n := 0
		for ; err == nil; n++ {
			_, err = l.Append(ctx, confirms(fmt.Sprint("a", n), 20)...)
		}
		require.ErrorIs(t, err, journal.ErrFull)
		before := all(t, l)
		require.Zero(t, len(before)%20, "all or nothing")
		for err = nil; err == nil; n++ {
			_, err = l.Append(ctx, confirm(fmt.Sprint("b", n)))
		}
		require.ErrorIs(t, err, journal.ErrFull)
		require.Equal(t, before, all(t, l)[:len(before)], "nothing is dropped")

		info, err := l.Info(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 64<<10, info.MaxBytes)
		require.Greater(t, float64(info.Bytes), 0.9*(64<<10))

		cfg.MaxBytes = 128 << 10
		_, err = l.js.UpdateStream(ctx, cfg)
		require.NoError(t, err)
		_, err = l.Append(ctx, confirm("fits again"))
		require.NoError(t, err)
	})
}

// One of several gathered callers is too large for what is left: the others are stored.
func TestRefusalConcernsOneCallerOnly(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	ctx := bounded(t, time.Minute)
	cfg := l.stream.CachedInfo().Config
	cfg.MaxBytes = 64 << 10
	_, err := l.js.UpdateStream(ctx, cfg)
	require.NoError(t, err)
	large := confirm("large")
	large.Data.(*journal.Confirm).Address = strings.Repeat("x", 65_000)
	var batch []*request
	for _, e := range []journal.Event{confirm("a"), large, confirm("b")} {
		r, err := newRequest(ctx, []journal.Event{e})
		require.NoError(t, err)
		batch = append(batch, r)
	}
	l.send(batch)
	require.NoError(t, batch[0].err)
	require.ErrorIs(t, batch[1].err, journal.ErrFull)
	require.NoError(t, batch[2].err)
	require.Len(t, all(t, l), 2)
}

func TestAppendAfterClose(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	closeLog(t, l)
	closeLog(t, l)
	_, err := l.Append(bounded(t, 10*time.Second), confirm("a"))
	require.ErrorIs(t, err, errClosed)
	err = l.Follow(bounded(t, 10*time.Second), 1, func([]journal.Record) error { return nil })
	require.Error(t, err)
}

// What others publish straight to NATS is in the journal as it came.
func TestForeignMessages(t *testing.T) {
	both(t, func(t *testing.T, l *Log) {
		ctx := bounded(t, time.Minute)
		valid := confirm("foreign")
		text, err := valid.Encode()
		require.NoError(t, err)
		foreign := []*nats.Msg{
			{Subject: valid.Subject(), Data: text},
			{Subject: "leadership.flink.dispatcher.confirm", Data: text},
			{Subject: "leadership.x", Data: []byte("{")},
			{Subject: "leadership.a.b.c.d", Data: nil},
			{Subject: "leadership.big", Data: []byte(strings.Repeat("x", journal.MaxSize+1))},
		}
		for _, m := range foreign {
			_, err := l.JetStream().PublishMsg(ctx, m)
			require.NoError(t, err)
		}
		_, err = l.JetStream().PublishMsg(ctx, &nats.Msg{Subject: "leadership.big", Data: make([]byte, maxMessage+1)})
		code, _ := apiCode(err)
		require.Equal(t, jetstream.JSErrCodeStreamMessageExceedsMaximum, code)
		_, err = l.Append(ctx, confirm("ours"))
		require.NoError(t, err)

		records := follow(t, l, 1, 6)
		require.NoError(t, records[0].Err)
		require.Equal(t, valid, records[0].Event)
		for i := 1; i < 5; i++ {
			require.ErrorIs(t, records[i].Err, journal.ErrInvalid)
			require.Equal(t, foreign[i].Subject, records[i].Subject)
			require.Equal(t, string(foreign[i].Data), string(records[i].Raw))
		}
		require.Equal(t, "ours", records[5].Event.ID)
	})
}
