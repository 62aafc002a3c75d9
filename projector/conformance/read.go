package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

func (s Suite) runRead(t *testing.T) {
	s.checks(t, map[string]func(*world){
		"sees what was pushed":          checkReadPushed,
		"sees what others change":       checkReadChanges,
		"sees nothing where nothing is": checkReadMissing,
		"sees the fence":                checkReadFence,
		"answers in the order asked":    checkReadOrder,
		"writes nothing":                checkReadWrites,
		"survives broken connections":   checkReadDrop,
		"ends with its context":         checkReadEnds,
	})
}

// read asks for the first component, of an object that can be reached.
func (w *world) read() projector.Observation {
	w.Helper()
	shown, err := w.target.Read(w.bounded(), []string{First})
	require.NoError(w, err)
	require.Len(w, shown, 1)
	require.Equal(w, First, shown[0].Component)
	require.False(w, shown[0].Gap)
	return shown[0]
}

// requireReads asks for the first component, and says what revision it was read at.
func (w *world) requireReads(l *journal.LeaderInfo, sequence uint64) uint64 {
	w.Helper()
	o := w.read()
	require.Equal(w, sequence, o.Sequence)
	if l == nil {
		require.Nil(w, o.Entry)
		return o.Revision
	}
	require.NotNil(w, o.Entry)
	require.Equal(w, w.suite.Visible(*l), *o.Entry)
	return o.Revision
}

func checkReadPushed(w *world) {
	for i := range 5 {
		n := uint64(5 + i)
		receipt := w.push(w.one(n, leader(i)))
		require.Equal(w, receipt.Revision, w.requireReads(leader(i), n), "the revision that the push had")
	}
	w.push(w.one(20, nil))
	w.requireReads(nil, 20)
	w.crash()
	w.requireReads(nil, 20)
}

// checkReadChanges reads at once what another process and others write, whatever the target knows by its own last
// write, or by a watch that may be late.
func checkReadChanges(w *world) {
	w.push(w.one(5, leader(1)))
	other := w.object.Target(w)
	if !w.suite.Unwatched {
		w.watch()
	}
	for i := range 10 {
		n := uint64(10 + i)
		_, err := other.Push(w.bounded(), fresh(w.one(n, leader(i))))
		require.NoError(w, err)
		before := w.requireReads(leader(i), n)
		w.object.Write(w, set(leader(100+i)))
		after := w.requireReads(leader(100+i), n)
		require.Greater(w, after, before, "revisions rise")
	}
	w.object.Write(w, set(nil))
	w.requireReads(nil, 19)
}

func checkReadMissing(w *world) {
	w.requireReads(nil, 0)
	w.push(w.one(5, leader(1)))
	w.object.Write(w, Change{Delete: true})
	w.requireReads(nil, 0)
}

func checkReadFence(w *world) {
	w.push(w.one(5, leader(1)))
	w.object.Write(w, Change{Sequence: 20})
	w.requireReads(leader(1), 20)
	w.object.Write(w, Change{Unfence: true})
	w.requireReads(leader(1), 0)
}

func checkReadOrder(w *world) {
	leaders := map[string]*journal.LeaderInfo{First: leader(1)}
	if w.shared() {
		leaders[Second] = leader(2)
	}
	w.push(w.document(5, leaders))
	for _, components := range [][]string{{First, Second}, {Second, First}, {"nobody", First}, {}} {
		shown, err := w.target.Read(w.bounded(), components)
		require.NoError(w, err)
		require.Len(w, shown, len(components))
		for i, o := range shown {
			require.Equal(w, components[i], o.Component)
			l := leaders[o.Component]
			require.Equal(w, l != nil, o.Entry != nil, o.Component)
			if l != nil {
				require.Equal(w, w.suite.Visible(*l), *o.Entry)
			}
		}
	}
}

func checkReadWrites(w *world) {
	w.requireReads(nil, 0)
	w.object.Write(w, Change{Noise: "others"})
	doc := w.one(5, leader(1))
	w.push(fresh(doc))
	before := w.object.Read(w)
	for range 3 {
		w.read()
	}
	require.Equal(w, before, w.object.Read(w))
	require.False(w, w.push(doc).Wrote)
}

// checkReadDrop allows reads to fail while the backend can't be reached, but not to say what isn't so.
func checkReadDrop(w *world) {
	w.push(w.one(5, leader(1)))
	for i := range 3 {
		w.object.Drop(w)
		w.object.Write(w, set(leader(10+i)))
		ctx := w.bounded()
		shown, err := w.target.Read(ctx, []string{First})
		for ; err != nil; shown, err = w.target.Read(ctx, []string{First}) {
			require.NoError(w, ctx.Err(), "still can't be read: %v", err)
		}
		require.NotNil(w, shown[0].Entry)
		require.Equal(w, w.suite.Visible(*leader(10 + i)), *shown[0].Entry)
	}
}

func checkReadEnds(w *world) {
	w.push(w.one(5, leader(1)))
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	_, err := w.target.Read(ctx, []string{First})
	require.Error(w, err, "it does not know what is shown")
}
