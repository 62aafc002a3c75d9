package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
)

// Info is the size of the journal, as its leader knows it.
type Info struct {
	First    uint64 // oldest sequence, while there are messages
	Last     uint64 // newest sequence, 0: none was ever written
	Messages uint64 // fewer than Last-First+1 only where the storage has lost some
	Bytes    uint64 // used of MaxBytes
	MaxBytes uint64
	LastTime time.Time // of the newest record
	Leader   string    // the server that leads the stream, empty on a server of its own
}

// Info asks the stream's leader, and while it can't be reached asks again until ctx ends.
func (l *Log) Info(ctx context.Context) (Info, error) {
	var info Info
	err := l.persist(ctx, "ask the stream's leader", func(ctx context.Context) error {
		s, err := l.stream.Info(ctx)
		if err != nil {
			return err
		}
		info = Info{
			First: s.State.FirstSeq, Last: s.State.LastSeq, Messages: s.State.Msgs,
			Bytes: s.State.Bytes, MaxBytes: uint64(max(s.Config.MaxBytes, 0)), LastTime: s.State.LastTime,
		}
		if s.Cluster != nil {
			info.Leader = s.Cluster.Leader
		}
		return nil
	})
	return info, err
}

// Last implements [journal.Log]. It asks until ctx ends.
func (l *Log) Last(ctx context.Context) (uint64, error) {
	info, err := l.Info(ctx)
	if err != nil {
		return 0, err
	}
	return max(info.Last, l.seen.Load()), nil // a leader that was replaced and doesn't know it yet may be behind
}

// Read is up to limit records from a sequence on, fewer at the end of the journal; 0 is where it begins. The stream's
// leader answers, so that every append acknowledged before the call is there. A missing record is an error that
// wraps [journal.ErrHole]; the records before it are given too.
func (l *Log) Read(ctx context.Context, from uint64, limit int) ([]journal.Record, error) {
	info, err := l.Info(ctx)
	if err != nil {
		return nil, err
	}
	from = max(from, 1)
	if from == 1 {
		from = max(info.First, 1)
	}
	if limit <= 0 || from > info.Last {
		return nil, nil
	}
	records := make([]journal.Record, 0, min(uint64(limit), info.Last-from+1))
	for sequence := from; sequence <= info.Last && len(records) < limit; sequence++ {
		m, err := l.get(ctx, sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return records, holeError(sequence, sequence, info.Last)
		}
		if err != nil {
			return records, fmt.Errorf("read record %d: %w", sequence, err)
		}
		records = append(records, journal.NewRecord(m.Sequence, m.Time.UTC(), m.Subject, m.Data))
	}
	return records, nil
}

// holeError says which sequences are missing, first to last, and what to do.
func holeError(first, last, newest uint64) error {
	return fmt.Errorf("%w: %d to %d are missing, the newest is %d; don't go on from here: "+
		"on a cluster stop the server, remove its copy of stream %s and start it, so that it fetches the stream from a replica; "+
		"otherwise restore a backup", journal.ErrHole, first, last, newest, Name)
}

// get is one message, from the stream's leader: without allow_direct there is no other who answers.
func (l *Log) get(ctx context.Context, sequence uint64) (*jetstream.RawStreamMsg, error) {
	var m *jetstream.RawStreamMsg
	err := l.persist(ctx, "ask the stream's leader", func(ctx context.Context) (err error) {
		m, err = l.stream.GetMsg(ctx, sequence)
		return err
	})
	return m, err
}

// attemptTimeout bounds one request. An election takes longer, and is waited for by asking again.
const attemptTimeout = 2 * time.Second

// patience is how long a new leader may take to know of all that was there before it.
const patience = 5 * time.Second

// persist repeats a request that changes nothing, or may be repeated, while there is nobody to answer it.
func (l *Log) persist(ctx context.Context, what string, request func(context.Context) error) error {
	start := time.Now()
	for attempt := 0; ; attempt++ {
		once, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := request(once)
		cancel()
		if err == nil {
			return nil
		}
		young := errors.Is(err, jetstream.ErrStreamNotFound) && time.Since(start) < patience
		if !passing(err) && !young || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if pause(ctx, attempt) != nil {
			return fmt.Errorf("%s: %w; the last answer: %w", what, context.Cause(ctx), err)
		}
	}
}

// passing says that an error is one of a server or cluster that starts, elects or is cut off, not an answer.
func passing(err error) bool {
	if code, ok := apiCode(err); ok {
		switch code {
		case codeNotAvailable, codeNotLeader, codeNoPeers, codeNotAssigned, codeTooManyRequests, jetstream.JSErrCodeStreamNameInUse:
			return true
		}
		return false
	}
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabled)
}

// pause waits before the next attempt: 5 ms at first, up to half a second.
func pause(ctx context.Context, attempt int) error {
	return sleep(ctx, min(5*time.Millisecond<<min(attempt, 10), 500*time.Millisecond))
}

// sleep waits, or returns why ctx has ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// What JetStream's error codes say that nats.go has no name for.
const (
	codeAccountFull     jetstream.ErrorCode = 10002
	codeNoPeers         jetstream.ErrorCode = 10005
	codeNotAssigned     jetstream.ErrorCode = 10007
	codeNotAvailable    jetstream.ErrorCode = 10008
	codeNotLeader       jetstream.ErrorCode = 10009
	codeServerFull      jetstream.ErrorCode = 10023
	codeStorageFull     jetstream.ErrorCode = 10047
	codeStoreFailed     jetstream.ErrorCode = 10077
	codeIDInProcess     jetstream.ErrorCode = 10158
	codeTooManyRequests jetstream.ErrorCode = 10167
	codeIncomplete      jetstream.ErrorCode = 10176
	codeDuplicate       jetstream.ErrorCode = 10201
	codeTooManyBatches  jetstream.ErrorCode = 10210
)

func apiCode(err error) (jetstream.ErrorCode, bool) {
	if e, ok := errors.AsType[*jetstream.APIError](err); ok {
		return e.ErrorCode, true
	}
	if e, ok := errors.AsType[jetstream.JetStreamError](err); ok && e.APIError() != nil {
		return e.APIError().ErrorCode, true
	}
	return 0, false
}
