package k8s

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatWasListedIsKnown(t *testing.T) {
	before, listed := &version{revision: 12}, &version{revision: 15}
	o := &object{known: before, own: []uint64{7, 12}}
	require.Same(t, listed, o.settle(listed, before))
	require.Equal(t, []uint64{7, 12}, o.own)

	o = &object{own: []uint64{7}}
	require.Same(t, listed, o.settle(listed, nil), "nothing was known")
}

func TestWhatWasPushedSinceTheListIsKnown(t *testing.T) {
	before, listed, pushed := &version{revision: 12}, &version{revision: 15}, &version{revision: 16}
	o := &object{known: pushed, own: []uint64{12, 16}}
	require.Same(t, pushed, o.settle(listed, before))
	require.Equal(t, []uint64{12, 16}, o.own)
}

// TestRestoreForgetsOwnWrites: their revisions come again, and are others' then.
func TestRestoreForgetsOwnWrites(t *testing.T) {
	before, listed := &version{revision: 12}, &version{revision: 5}
	o := &object{known: before, own: []uint64{4, 7, 12}}
	require.Same(t, listed, o.settle(listed, before))
	require.Equal(t, []uint64{4}, o.own)

	pushed := &version{revision: 6}
	o = &object{known: pushed, own: []uint64{4, 7, 12, 6}}
	require.Same(t, pushed, o.settle(listed, before))
	require.Equal(t, []uint64{4, 6}, o.own)
}
