package alive

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func change(revision uint64) Change { return Change{Entry: Entry{Revision: revision}} }

func TestAChangeThatIsMissingIsNoticed(t *testing.T) {
	r := newReader(nil)
	require.NoError(t, r.add(change(5), true, 1))
	require.NoError(t, r.add(change(9), false, 2))
	require.ErrorContains(t, r.add(change(11), true, 4), "change 4 came after 2")
	require.Equal(t, []Change{change(5)}, r.take())
	require.Empty(t, r.take())
}

// TestABucketThatBeganAnewIsNoticed has the consumer go on in it, as one of a cluster may.
func TestABucketThatBeganAnewIsNoticed(t *testing.T) {
	r := newReader(nil)
	require.NoError(t, r.add(change(5), true, 1))
	require.ErrorContains(t, r.add(change(5), true, 2), "the bucket was lost")
}

// leader says which revision the bucket's leader has, or has an error.
type leader struct {
	jetstream.Stream
	revision uint64
	err      error
}

func (l *leader) GetLastMsgForSubject(context.Context, string) (*jetstream.RawStreamMsg, error) {
	if l.err != nil {
		return nil, l.err
	}
	return &jetstream.RawStreamMsg{Sequence: l.revision}, nil
}

// TestAReplicaThatIsBehindIsNoticed though it sends heartbeats: the leader has what does not come.
func TestAReplicaThatIsBehindIsNoticed(t *testing.T) {
	r := newReader(nil)
	l := &leader{err: jetstream.ErrMsgNotFound}
	c := checker{reader: r, stream: l}
	order := uint64(0)
	check := func() error { r.beats++; return c.check(t.Context()) }
	add := func(revision uint64) {
		order++
		require.NoError(t, r.add(change(revision), true, order))
	}
	require.NoError(t, check(), "there are no keys")
	require.NoError(t, check())
	add(5)
	require.NoError(t, check())
	l.revision, l.err = 5, nil
	require.NoError(t, check())
	require.NoError(t, check(), "it has come")
	l.revision = 6
	require.NoError(t, check(), "it may be on its way")
	add(6)
	require.NoError(t, check())
	l.revision = 7
	require.NoError(t, check())
	require.ErrorContains(t, check(), "revision 7 does not come")

	c = checker{reader: r, stream: &leader{err: jetstream.ErrNoStreamResponse}}
	require.NoError(t, check(), "something has come")
	require.ErrorIs(t, check(), jetstream.ErrNoStreamResponse)
	require.ErrorIs(t, c.check(t.Context()), errSilent)
}
