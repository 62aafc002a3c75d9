package crash_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal/stream"
)

// TestKill kills journald at random moments, again and again, while it starts and while services publish. Nothing that
// was acknowledged is missing, every view that it had is that of a replay, and the targets come to show the newest.
func TestKill(t *testing.T) {
	kills, seed := number(t, "JOURNALD_KILLS", 200), seeded(t)
	cluster, seats := newCluster(t), newSeats()
	load := newLoad(t, seats, seed, 10, shown, plain)
	cluster.witness.expect(load)
	data := t.TempDir()
	args := []string{"--data", data, "--instance", "journald-0", cluster.settings(cluster.config, "")}

	load.begin()
	began := time.Now()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range kills {
		killOnce(t, seats, rng, args)
	}
	acked, lost, refused := load.counts()
	t.Logf("%d kills took %s: %d events acknowledged, %d answers lost, refused %v", kills, time.Since(began).Round(time.Millisecond),
		acked, lost, refused)

	last := bin.Start(t, append(args, "--nats-listen", "127.0.0.1:0")...)
	seats.add(last)
	load.settle()
	require.Greater(t, load.lost, int(kills/4), "the kills came in the middle of requests")
	require.Greater(t, load.total(), int(kills*5), "there was a load")
	load.converges(cluster, last.NATS())
	load.ask(t.Context(), last)
	cluster.witness.faultless(t)
	t.Logf("the ConfigMap was written %d times, SIGTERM took %s", cluster.witness.updates, last.Terminate(patient))

	records := readAll(t, openLog(t, stream.Options{Embedded: &stream.Embedded{Dir: data}}))
	load.checkRecords(records)
	found := load.replay(records, seed)
	load.checkView(found.view)
	t.Logf("%d records, %d views compared, %d records of a replaced projector", len(records), len(load.hashes), found.void)
}

// killOnce starts a journald and kills it at a random moment: one time in four while it starts, else under load.
func killOnce(t *testing.T, seats *seats, rng *rand.Rand, args []string) {
	t.Helper()
	i := bin.Launch(t, args...)
	early, moment := rng.IntN(4) == 0, time.Duration(rng.Int64N(int64(400*time.Millisecond)))
	if early {
		moment /= 4
	}
	go func() {
		select {
		case <-i.Listening():
			seats.add(i)
		case <-i.Ended():
		}
	}()
	if !early {
		i.AwaitListening()
	}
	select {
	case <-time.After(moment):
	case <-i.Ended():
		require.FailNow(t, "journald ended by itself", i.Said())
	}
	i.Kill()
}

// converges waits until every target shows what the services know: the ConfigMap, and the bucket on a NATS server.
func (l *load) converges(c *cluster, nats string) {
	l.t.Helper()
	fence, must := l.fence(shown), l.must(shown)
	await(l.t, patient, "the ConfigMap shows the newest", func() bool {
		at, entries := c.witness.state()
		return at == fence && reflect.DeepEqual(entries, must)
	})
	b := openBucket(l.t, nats)
	await(l.t, patient, "the bucket shows the newest", func() bool { return b.shows(l.t, l) })
}
