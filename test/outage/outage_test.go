package outage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
)

const (
	usual         = 2 * time.Minute
	driftPatience = time.Minute      // after which PublishedDrift is due, and is cleared
	slack         = 45 * time.Second // for a hundred alerts, decided one by one while the group moves all the time
	look          = 2 * time.Second  // how often journald is looked at in the outage
)

// TestOutage has backends go away and come back.
func TestOutage(t *testing.T) {
	o := newOutage(t, duration(t, "JOURNALD_OUTAGE", usual))
	o.begin()
	o.endure()
	o.end()
	o.converge()
	o.calm()
	for _, w := range o.worlds {
		t.Run(w.name, func(t *testing.T) {
			t.Run("the journal has all events", func(t *testing.T) { w.holdsEvents(t, o) })
			t.Run("the view is right", w.holdsView)
			t.Run("what is up keeps up", w.keptUp)
			t.Run("what is back shows the newest soon", func(t *testing.T) { w.convergedSoon(t, o) })
			t.Run("alerts come and go", func(t *testing.T) { w.alerted(t, o) })
			t.Run("memory is bounded", w.staysSmall)
		})
	}
	t.Run("little is written", o.wroteLittle)
}

// outage is one timeline for all worlds.
type outage struct {
	t       *testing.T
	lasting time.Duration
	worlds  []*world
	nodes   *testenv.ZooKeeperNodes // the ensemble that loses its quorum

	began, recovered time.Time
	dead             []int // nodes
	leases           int   // writes of Leases before the recovery, of all worlds
}

func newOutage(t *testing.T, lasting time.Duration) *outage {
	t.Helper()
	o := &outage{t: t, lasting: lasting, nodes: testenv.ZooKeeperEnsemble(t, 3)}
	o.worlds = []*world{
		newWorld(t, "kubernetes", testenv.ZooKeeper(t), true, false),
		newWorld(t, "zookeeper", o.nodes, false, true),
		newWorld(t, "both", o.nodes, true, true),
	}
	for _, w := range o.worlds {
		w.settle()
	}
	return o
}

// begin takes the backends away, of the ensemble the leader and one more, and starts the load.
func (o *outage) begin() {
	o.t.Helper()
	o.began = time.Now()
	leader := o.nodes.Leader(o.t.Context())
	o.dead = []int{leader, (leader + 1) % 3}
	for _, n := range o.dead {
		require.NoError(o.t, o.nodes.Kill(n))
	}
	for _, w := range o.worlds {
		if w.cut {
			w.api.line.Cut()
		}
		w.load.begin(o.t)
	}
	for _, w := range o.worlds {
		w.awaitStanding(degraded)
	}
}

// endure looks at journald until the outage has lasted long enough.
func (o *outage) endure() {
	o.t.Helper()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for time.Since(o.began) < o.lasting {
		<-ticker.C
		for _, w := range o.worlds {
			require.Equal(o.t, degraded, w.standing(), w.name)
			w.measure()
			w.keepUp()
		}
	}
}

// end has the load end and everything come back at one moment. One server more makes a quorum.
func (o *outage) end() {
	o.t.Helper()
	for _, w := range o.worlds {
		w.load.finish()
		require.NoError(o.t, w.load.failed)
		w.keepUp()
	}
	o.leases = o.worlds[0].api.written()
	require.NoError(o.t, o.nodes.Start(o.dead[0]))
	require.NoError(o.t, o.nodes.AwaitQuorum(o.t.Context()))
	o.recovered = time.Now()
	for _, w := range o.worlds {
		w.api.line.Resume()
	}
	for _, w := range o.worlds {
		w.zk.connect()
	}
	o.t.Logf("the outage lasted %s", o.recovered.Sub(o.began).Round(time.Millisecond))
}

// converge waits until every place shows the newest, and notes how long that took.
func (o *outage) converge() {
	o.t.Helper()
	var waiting []*place
	for _, w := range o.worlds {
		waiting = append(waiting, w.places...)
	}
	await(o.t, patient, "every target shows the newest", func() bool {
		waiting = slices.DeleteFunc(waiting, func(p *place) bool {
			shown := p.shown()
			p.converged = time.Since(o.recovered)
			return len(lacking(p.world.load.must(), shown)) == 0
		})
		return len(waiting) == 0
	})
}

// calm waits until journald has nothing left to do: no target is out of sync, and the alerts of the outage are cleared.
func (o *outage) calm() {
	o.t.Helper()
	for _, w := range o.worlds {
		w.awaitStanding(ready)
	}
	for _, w := range o.worlds {
		await(o.t, driftPatience+slack, w.name+" has no alert any more", func() bool { return !w.alarmed(publishedDrift) })
	}
}
