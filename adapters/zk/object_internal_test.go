package zk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARestoreForgetsOwnWrites of after the backup: their revisions come again, and are others' then.
func TestARestoreForgetsOwnWrites(t *testing.T) {
	o := &object{target: &target{}, known: &version{revision: 12}, own: []uint64{4, 7, 12}, writes: 3}
	require.False(t, o.reset(&version{revision: 5}, 2), "a write ended since")
	require.Equal(t, uint64(12), o.known.revision)
	require.True(t, o.reset(&version{revision: 5, mark: &mark{}}, 3))
	require.Equal(t, uint64(5), o.known.revision)
	theirs := &version{revision: 7, mark: &mark{}}
	require.False(t, o.saw(theirs, &sight{}))
	require.True(t, o.saw(&version{revision: 4, mark: &mark{}}, &sight{}))
}
