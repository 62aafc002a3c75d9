package conformance

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

func (s Suite) runPush(t *testing.T) {
	s.checks(t, map[string]func(*world){
		"shows":                               checkShows,
		"writes only where something differs": checkIdempotent,
		"writes a sequence that rose":         checkFenceOnly,
		"refuses a lower sequence":            checkSuperseded,
		"refuses a lower sequence to others":  checkSupersededAnew,
		"leaves a newer fence alone":          checkForeignFence,
		"withdraws":                           checkWithdraw,
		"withdraws what was never shown":      checkWithdrawNothing,
		"keeps what it does not own":          checkOthers,
		"is never seen absent":                checkNeverAbsent,
		"repairs":                             checkRepairs,
		"notices a second writer":             checkConflict,
	})
	if s.world(t).shared() {
		s.checks(t, map[string]func(*world){
			"takes down exactly what is withdrawn": checkWithdrawOne,
			"leaves other components alone":        checkUnnamed,
			"names what it changed":                checkChanged,
		})
	}
}

func checkShows(w *world) {
	first := w.push(w.one(5, leader(1)))
	require.True(w, first.Wrote)
	require.Equal(w, []string{First}, first.Changed)
	second := w.push(w.one(6, leader(2)))
	require.True(w, second.Wrote)
	require.Greater(w, second.Revision, first.Revision, "revisions rise")
}

func checkIdempotent(w *world) {
	doc := w.one(5, leader(1))
	first := w.push(doc)
	for range 3 {
		require.Equal(w, projector.Receipt{Revision: first.Revision}, w.push(doc))
		require.Equal(w, projector.Receipt{Revision: first.Revision}, w.push(fresh(doc)))
	}
	w.crash()
	require.Equal(w, projector.Receipt{Revision: first.Revision}, w.push(doc))
	doc.Projector = 2
	require.Equal(w, projector.Receipt{Revision: first.Revision}, w.push(fresh(doc)), "another projector is no difference")
}

func checkFenceOnly(w *world) {
	first := w.push(w.one(5, leader(1)))
	doc := w.one(5, leader(1))
	doc.Sequence = 8
	receipt := w.push(doc)
	require.True(w, receipt.Wrote)
	require.Empty(w, receipt.Changed)
	require.Greater(w, receipt.Revision, first.Revision)
}

func checkSuperseded(w *world) {
	w.push(w.one(10, leader(2)))
	for _, l := range []*journal.LeaderInfo{leader(1), leader(2), nil} {
		w.requireRefused(w.one(9, l), projector.ErrSuperseded)
		w.requireRefused(fresh(w.one(9, l)), projector.ErrSuperseded)
	}
	w.push(w.one(11, nil))
	w.requireRefused(w.one(10, leader(2)), projector.ErrSuperseded)
}

func checkSupersededAnew(w *world) {
	w.push(w.one(10, leader(2)))
	w.crash()
	w.requireRefused(w.one(9, leader(1)), projector.ErrSuperseded)
	w.crash()
	w.requireRefused(fresh(w.one(9, nil)), projector.ErrSuperseded)
}

func checkForeignFence(w *world) {
	w.push(w.one(10, leader(2)))
	w.object.Write(w, Change{Sequence: 20})
	w.requireRefused(fresh(w.one(15, leader(1))), projector.ErrSuperseded)
	w.requireRefused(fresh(w.one(15, nil)), projector.ErrSuperseded)
	w.push(fresh(w.one(20, leader(1))))
}

func checkWithdraw(w *world) {
	w.push(w.one(5, leader(1)))
	receipt := w.push(w.one(6, nil))
	require.True(w, receipt.Wrote)
	require.Equal(w, []string{First}, receipt.Changed)
	require.False(w, w.push(w.one(6, nil)).Wrote)
	w.push(w.one(7, leader(1)))
}

// checkWithdrawNothing has the fence written all the same: an older intent may be on its way.
func checkWithdrawNothing(w *world) {
	w.push(w.one(6, nil))
	w.crash()
	w.requireRefused(w.one(5, leader(1)), projector.ErrSuperseded)
}

func checkOthers(w *world) {
	w.object.Write(w, Change{Noise: "before"})
	before := w.object.Read(w).Others
	w.push(w.one(5, leader(1)))
	require.Equal(w, before, w.object.Read(w).Others)
	w.object.Write(w, Change{Noise: "between"})
	between := w.object.Read(w).Others
	for i := range 5 {
		w.push(fresh(w.one(uint64(6+i), leader(i))))
	}
	w.push(w.one(20, nil))
	require.Equal(w, between, w.object.Read(w).Others)
}

// checkNeverAbsent reads all the while that the leader changes.
func checkNeverAbsent(w *world) {
	w.push(w.one(1, leader(1)))
	done := make(chan struct{})
	var reader sync.WaitGroup
	absent, fell := 0, 0
	reader.Go(func() {
		last := uint64(0)
		for {
			select {
			case <-done:
				return
			default:
			}
			shown := w.object.Read(w)
			if _, ok := shown.Entries[First]; !ok {
				absent++
			}
			if shown.Sequence < last {
				fell++
			}
			last = shown.Sequence
		}
	})
	for i := range 50 {
		w.push(w.one(uint64(2+i), leader(i)))
	}
	close(done)
	reader.Wait()
	require.Zero(w, absent, "reads that found nothing")
	require.Zero(w, fell, "reads that found a lower sequence than the one before")
}

func checkRepairs(w *world) {
	for _, damage := range []Change{
		{Entries: map[string]*journal.LeaderInfo{First: nil}},
		{Entries: map[string]*journal.LeaderInfo{First: leader(7)}},
		{Unfence: true},
		{Sequence: 2},
		{Delete: true},
	} {
		doc := w.one(5, leader(1))
		w.push(fresh(doc))
		w.object.Write(w, damage)
		receipt := w.push(fresh(doc))
		require.True(w, receipt.Wrote, "%+v", damage)
		require.False(w, w.push(doc).Wrote)
	}
}

// checkConflict has somebody else write between read and write, and after the last read.
func checkConflict(w *world) {
	w.push(w.one(5, leader(1)))
	held := w.object.Hold(w)
	doc := w.one(6, leader(2))
	pushed := w.begin(w.bounded(), w.target, doc)
	w.await(held.Reached)
	w.object.Write(w, Change{Noise: "second writer"})
	before := w.object.Read(w)
	held.Let()
	w.requireConflict((<-pushed).err, before, doc)
	w.push(fresh(doc))
	require.Equal(w, before.Others, w.object.Read(w).Others)

	w.object.Write(w, Change{Noise: "after the last read"})
	before, doc = w.object.Read(w), w.one(7, leader(3))
	_, err := w.target.Push(w.bounded(), doc)
	w.requireConflict(err, before, doc)
	w.push(fresh(doc))
	require.Equal(w, before.Others, w.object.Read(w).Others)
}

// requireConflict allows a target to have read and compared again by itself.
func (w *world) requireConflict(err error, before Shown, doc *projector.Document) {
	w.Helper()
	if err == nil {
		w.requireShows(doc)
		return
	}
	require.ErrorIs(w, err, projector.ErrConflict)
	require.Equal(w, before, w.object.Read(w))
}

func checkWithdrawOne(w *world) {
	w.push(w.document(5, map[string]*journal.LeaderInfo{First: leader(1), Second: leader(2)}))
	receipt := w.push(w.document(6, map[string]*journal.LeaderInfo{First: nil, Second: leader(2)}))
	require.Equal(w, []string{First}, receipt.Changed)
}

func checkUnnamed(w *world) {
	w.push(w.document(5, map[string]*journal.LeaderInfo{First: leader(1), Second: leader(2)}))
	w.push(w.document(6, map[string]*journal.LeaderInfo{Second: nil}))
	w.requireEntry(w.object.Read(w), First, leader(1))
	w.object.Write(w, Change{Entries: map[string]*journal.LeaderInfo{Second: leader(3)}})
	w.push(fresh(w.one(7, leader(4))))
	w.requireEntry(w.object.Read(w), Second, leader(3))
}

func checkChanged(w *world) {
	both := w.push(w.document(5, map[string]*journal.LeaderInfo{First: leader(1), Second: leader(2)}))
	require.Equal(w, []string{Second, First}, both.Changed)
	one := w.push(w.document(6, map[string]*journal.LeaderInfo{First: leader(3), Second: leader(2)}))
	require.Equal(w, []string{First}, one.Changed)
}
