package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/standing"
)

// keepVerdicts is how long it is known what folding a record did: longer than NATS knows a repeated event by its id, which
// is two minutes.
const keepVerdicts = 5 * time.Minute

// fold is the view of one group, as far as its records have come.
//
// It is what a journald has of the group, which folds all groups: nothing in a group follows from another one's records.
// The one thing that may differ is a time, where the clocks of two leaders of the log do: a journald makes times monotone
// over all groups.
type fold struct {
	group string

	mu       sync.Mutex
	view     *view.View
	current  bool // all that was stored when the client was opened is folded
	verdicts []verdict
	ended    error         // why nothing more is folded
	changed  chan struct{} // closed and replaced after every change
}

// verdict is what folding a record did.
type verdict struct {
	sequence uint64
	at       time.Time
	ack      Ack
}

func newFold(group string) *fold {
	return &fold{group: group, view: view.New(), changed: make(chan struct{})}
}

// apply folds records.
func (f *fold) apply(records []journal.Record, current bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range records {
		r := &records[i]
		result := f.view.Apply(r)
		f.verdicts = append(f.verdicts, verdict{r.Sequence, f.view.Time(), Ack{Verdict: result.Verdict, Reason: result.Reason}})
	}
	f.forget()
	f.current = current
	f.wake()
	return nil
}

// forget drops verdicts that nobody can ask for any more, half of them at a time.
func (f *fold) forget() {
	old := f.view.Time().Add(-keepVerdicts)
	if n := len(f.verdicts) / 2; n > 0 && f.verdicts[n].at.Before(old) {
		f.verdicts = slices.Clone(f.verdicts[n:])
	}
}

// end says that nothing more will be folded.
func (f *fold) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = err
	f.wake()
}

func (f *fold) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// judged waits until a record is folded, and says what that did.
func (f *fold) judged(ctx context.Context, sequence uint64) (Ack, error) {
	for {
		f.mu.Lock()
		changed, ended, reached := f.changed, f.ended, f.view.Sequence() >= sequence
		ack := f.verdict(sequence)
		f.mu.Unlock()
		switch {
		case reached:
			return ack, nil
		case ended != nil:
			return Ack{}, ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Ack{}, fmt.Errorf("record %d is stored, but what that did is not known: %w", sequence, context.Cause(ctx))
		}
	}
}

func (f *fold) verdict(sequence uint64) Ack {
	i, ok := slices.BinarySearchFunc(f.verdicts, sequence, func(v verdict, s uint64) int { return cmp.Compare(v.sequence, s) })
	if !ok {
		return Ack{Sequence: sequence, Reason: "it was folded too long ago for its verdict to be known"}
	}
	ack := f.verdicts[i].ack
	ack.Sequence = sequence
	return ack
}

// follow tells where a candidate stands, once that is known and after every change, until ctx ends.
func (f *fold) follow(ctx context.Context, candidate string, tell func(Standing) error) error {
	var told *Standing
	for {
		f.mu.Lock()
		changed, ended, current := f.changed, f.ended, f.current
		now := standing.Of(f.view, f.group, candidate)
		f.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if current && (told == nil || !standing.Same(now, *told)) {
			if err := tell(now); err != nil {
				return err
			}
			told = &now
		}
		if ended != nil {
			return ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
