package crash_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/view"
)

// openLog opens the journal that journald wrote, without journald.
func openLog(t *testing.T, opts stream.Options) *stream.Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	opts.Instance, opts.Logger = "replay", slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	log, err := stream.Open(ctx, opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, log.Close(ctx))
	})
	return log
}

// readAll is every record of the journal.
func readAll(t *testing.T, log journal.Log) (records []journal.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	last, err := log.Last(ctx)
	require.NoError(t, err)
	require.NotZero(t, last)
	enough := errors.New("enough")
	err = log.Follow(ctx, 1, func(batch []journal.Record) error {
		records = append(records, batch...)
		if batch[len(batch)-1].Sequence >= last {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	return records
}

// checkRecords holds the journal against what was acknowledged: each event is at its sequence, and nowhere else.
func (l *load) checkRecords(records []journal.Record) {
	l.t.Helper()
	found := map[string]uint64{}
	for i := range records {
		r := &records[i]
		require.EqualValues(l.t, i+1, r.Sequence, "sequences are contiguous")
		require.NoError(l.t, r.Err, "record %d: %s", r.Sequence, r.Raw)
		id := r.Event.MessageID()
		require.Zero(l.t, found[id], "%s is at %d and at %d", id, found[id], r.Sequence)
		found[id] = r.Sequence
	}
	require.NotEmpty(l.t, l.acked)
	for id, sequence := range l.acked {
		require.Equal(l.t, sequence, found[id], "%s was acknowledged at %d", id, sequence)
	}
}

// replayed is what a replay finds.
type replayed struct {
	view *view.View
	void int // records of a projector that had been replaced
}

// replay folds the journal without an interruption, and a second time with a snapshot and a restart at random places.
// Both must come to every hash that a running instance reported.
func (l *load) replay(records []journal.Record, seed uint64) replayed {
	l.t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	straight, broken := replayed{view: view.New()}, view.New()
	compared := 0
	compare := func(sequence uint64) {
		if hash, ok := l.hashes[sequence]; ok {
			compared++
			require.Equal(l.t, hash, straight.view.Hash(), "at %d a running instance had another view", sequence)
			require.Equal(l.t, hash, broken.Hash(), "at %d the view differs that was restored from snapshots", sequence)
		}
	}
	compare(0)
	for i := range records {
		straight.apply(l.t, &records[i])
		broken.Apply(&records[i])
		if rng.IntN(len(records)/20+1) == 0 {
			broken = restart(l.t, broken)
		}
		compare(records[i].Sequence)
	}
	require.Len(l.t, l.hashes, compared, "every view that was reported is one of the journal")
	require.Equal(l.t, straight.view.Hash(), broken.Hash())
	return straight
}

// apply folds one record. What a projector writes that was replaced is void.
func (f *replayed) apply(t *testing.T, r *journal.Record) {
	t.Helper()
	epoch, _ := f.view.Projector()
	result := f.view.Apply(r)
	if by := projectorOf(t, r); by != 0 && by < epoch {
		f.void++
		require.Equal(t, view.Void, result.Verdict, "record %d is one of projector %d, %d had taken over", r.Sequence, by, epoch)
	}
}

// projectorOf is the epoch of the projector that wrote a record, 0 for what others wrote.
func projectorOf(t *testing.T, r *journal.Record) uint64 {
	t.Helper()
	var e struct {
		Data struct {
			Projector uint64 `json:"projector"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal(r.Raw, &e))
	return e.Data.Projector
}

func restart(t *testing.T, v *view.View) *view.View {
	t.Helper()
	var snapshot bytes.Buffer
	require.NoError(t, v.Snapshot(&snapshot))
	restored, err := view.Restore(&snapshot)
	require.NoError(t, err)
	return restored
}

// checkView holds a view against what the services know.
func (l *load) checkView(v *view.View) {
	l.t.Helper()
	for _, p := range l.publishers {
		g := v.Group(p.group)
		require.NotNil(l.t, g, p.group)
		c := g.Components[p.component]
		require.NotNil(l.t, c, p.candidate())
		require.Equal(l.t, p.shown, c.Leader(), p.candidate())
		if p.changed > 0 {
			require.Equal(l.t, p.changed, c.Intent.Sequence, p.candidate())
		}
		session := ""
		if c.Term != nil {
			session = c.Term.Session
		}
		require.Equal(l.t, p.session, session, p.candidate())
	}
}
