package outage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/view"
)

const (
	soon           = 5 * time.Second // in which targets that are up, or are back, show the newest
	writesAllowed  = 1.2             // for each object that changed
	publishedDrift = "PublishedDrift"
	targetFailing  = "TargetFailing"
)

// holdsEvents says that the journal has all that was acknowledged, once, in its place, and that there was a load.
func (w *world) holdsEvents(t *testing.T, o *outage) {
	stored := map[string]uint64{}
	for _, kind := range []string{"grant", "confirm"} {
		for _, r := range w.records(kind) {
			var event struct {
				ID string `json:"id"`
			}
			require.NoError(t, json.Unmarshal(r.Event, &event))
			require.Zero(t, stored[event.ID], "%s is stored twice", event.ID)
			stored[event.ID] = r.Sequence
		}
	}
	t.Logf("%d events, %d answers lost, %s the longest until an acknowledgement", len(stored), w.load.lost,
		w.load.longest.Round(time.Millisecond))
	require.Equal(t, w.load.acked, stored)
	require.Greater(t, float64(len(stored)), 0.9*2*busy*float64(o.lasting/period))
}

// holdsView says that the view has the newest leader of each component, and that nothing was taken for somebody else's
// doing.
func (w *world) holdsView(t *testing.T) {
	components := w.view().Components
	for name, n := range w.load.must() {
		want, c := leaderOf(name, n), components[name]
		require.NotNil(t, c, name)
		require.Equal(t, &want, c.Intent.Leader)
		require.Equal(t, want.Session, c.Term.Session)
		for target, s := range c.Targets {
			require.Zero(t, s.DriftTotal, "nobody but journald wrote %s of %s: %+v", target, name, c.Anomalies)
		}
	}
}

// keptUp says that the outage of one backend does not keep another from being written. It is judged by the median: a busy
// machine stands still for seconds now and then.
func (w *world) keptUp(t *testing.T) {
	for _, p := range w.places {
		if p.away {
			continue
		}
		slices.Sort(p.behind)
		median, most := p.behind[len(p.behind)/2], p.behind[len(p.behind)-1]
		t.Logf("%s was %s behind, %s at most", p, median.Round(time.Millisecond), most.Round(time.Millisecond))
		require.Less(t, median, soon, p)
	}
}

// convergedSoon says that what was away showed the newest in time.
func (w *world) convergedSoon(t *testing.T, o *outage) {
	for _, p := range w.places {
		if p.away {
			t.Logf("%s was seen again %s after the recovery, and showed the newest after %s",
				p, p.seenAgain(t, o.recovered).Round(time.Millisecond), p.converged.Round(time.Millisecond))
		}
	}
	for _, p := range w.places {
		require.Less(t, p.converged, soon, p)
	}
}

// seenAgain is when the first observation of a place was stored.
func (p *place) seenAgain(t *testing.T, recovered time.Time) (after time.Duration) {
	for _, r := range p.world.records("watch") {
		var seen struct {
			Data struct {
				Target string `json:"target"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal(r.Event, &seen))
		if at := r.Time.Sub(recovered); seen.Data.Target == p.name && at > 0 && (after == 0 || at < after) {
			after = at
		}
	}
	return after
}

// wroteLittle counts how often what was away was written since. Every object has changed.
func (o *outage) wroteLittle(t *testing.T) {
	lease := ratio{writes: o.worlds[0].api.written() - o.leases}
	for _, w := range o.worlds {
		if w.cut {
			lease.objects += size
		}
		if w.dead {
			(&ratio{w.zk.written() - w.zk.before, size}).judge(t, w.name+"/"+zooKeeperTarget)
		}
	}
	lease.judge(t, kubernetesTarget)
}

// ratio is how often objects were written.
type ratio struct{ writes, objects int }

func (r *ratio) judge(t *testing.T, of string) {
	t.Helper()
	each := float64(r.writes) / float64(r.objects)
	t.Logf("%s: %d writes of %d objects that changed", of, r.writes, r.objects)
	require.GreaterOrEqual(t, each, 1.0, of)
	require.LessOrEqual(t, each, writesAllowed, of)
}

// alerted says that PublishedDrift was raised once for each component when it was due, and cleared when it was, and that
// a backend that comes back by itself is no TargetFailing.
func (w *world) alerted(t *testing.T, o *outage) {
	raised, cleared := map[string]time.Duration{}, map[string]time.Duration{}
	for _, a := range w.alerts(t, "alert") {
		require.NotEqual(t, targetFailing, a.Data.Name, a.Data.Reason)
		if a.Data.Name == publishedDrift {
			require.NotContains(t, raised, a.About)
			require.Contains(t, a.Data.Reason, "has been out of sync since")
			raised[a.About] = a.at.Sub(o.began)
			require.Greater(t, raised[a.About], driftPatience, a.About)
		}
	}
	for _, a := range w.alerts(t, "clear") {
		if a.Data.Name == publishedDrift {
			cleared[a.About] = a.at.Sub(o.recovered)
			require.Greater(t, cleared[a.About], driftPatience-time.Second, a.About) // the quorum was there a moment before
		}
	}
	t.Logf("%s of %d components, the last one %s after the outage began", publishedDrift, len(raised), latest(raised))
	require.Len(t, cleared, len(raised))
	if o.lasting > driftPatience+slack {
		require.Len(t, raised, size)
		require.Less(t, latest(raised), driftPatience+slack)
	}
}

func latest(all map[string]time.Duration) (last time.Duration) {
	for _, at := range all {
		last = max(last, at)
	}
	return last.Round(time.Millisecond)
}

// alert is one that was raised or cleared.
type alert struct {
	About string `json:"subject"` // group/component
	Data  struct {
		Name   string `json:"name"`
		Reason string `json:"reason"`
	} `json:"data"`
	at time.Time
}

// alerts are those records of a kind that had force: a decision has none where the group has moved since.
func (w *world) alerts(t *testing.T, kind string) (all []alert) {
	for _, r := range w.records(kind) {
		if r.Verdict == view.Applied {
			a := alert{at: r.Time}
			require.NoError(t, json.Unmarshal(r.Event, &a))
			all = append(all, a)
		}
	}
	return all
}
