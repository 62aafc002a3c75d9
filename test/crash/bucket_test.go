package crash_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

// bucket is the built-in key-value bucket, as any NATS client sees it.
type bucket struct{ kv jetstream.KeyValue }

func openBucket(t *testing.T, url string) *bucket {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), "leaders")
	require.NoError(t, err)
	return &bucket{kv}
}

// leader is who is shown to lead a component; found is false where it was never shown.
func (b *bucket) leader(ctx context.Context, group, component string) (leader *journal.LeaderInfo, found bool, err error) {
	entry, err := b.kv.Get(ctx, group+"."+component)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var value struct {
		Leader *journal.LeaderInfo `json:"leader"`
	}
	err = json.Unmarshal(entry.Value(), &value)
	return value.Leader, true, err
}

// shows says whether the bucket shows every component of a settled load.
func (b *bucket) shows(t *testing.T, l *load) bool {
	t.Helper()
	for _, p := range l.publishers {
		leader, found, err := b.leader(t.Context(), p.group, p.component)
		require.NoError(t, err)
		if !found && p.events > 0 || !same(leader, p.shown) {
			return false
		}
	}
	return true
}

func same(a, b *journal.LeaderInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Session == b.Session && a.Candidate == b.Candidate && a.Address == b.Address
}
