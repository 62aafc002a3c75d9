package candidate

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/health"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// disk is one that can be filled.
type disk struct{ full chan bool }

func newDisk() *disk {
	d := &disk{make(chan bool, 1)}
	d.full <- false
	return d
}

func (d *disk) set(full bool) {
	<-d.full
	d.full <- full
}

func (d *disk) check(c *Config, _ *Callbacks) {
	c.Checks = []health.Check{{Name: "disk", Period: 10 * time.Second, Deadline: 5 * time.Second, Probe: func(context.Context) error {
		full := <-d.full
		d.full <- full
		if full {
			return errors.New("no space left on device")
		}
		return nil
	}}}
}

func fit(name string) func(*view.Group) bool {
	return func(g *view.Group) bool { return joined(name)(g) && g.Candidates[name].Rank == "pass" }
}

// A leader whose disk is full leads for no longer than the threshold says, leads again only where nobody else is there, and
// gives that up as soon as somebody fit is.
func TestAFullDiskCostsTheTerm(t *testing.T) {
	run(t, func(t *testing.T) {
		w, full := newWorld(t, managed()), newDisk()
		a := start(t, w, "a", full.check)
		w.await(t, "a leads", ledBy("a"))
		b := start(t, w, "b", newDisk().check)
		w.await(t, "b is fit", fit("b"))
		full.set(true)
		began := time.Now()
		w.await(t, "b leads", ledBy("b"))
		require.LessOrEqual(t, time.Since(began), 3*10*time.Second+time.Second)
		require.Contains(t, w.said(t, "yield")[0].Event.Data.(*journal.Yield).Reason, "disk")

		b.end()
		<-b.done
		require.Len(t, w.said(t, "yield"), 1, "it is not handed to a, and back to b, while b ends")
		w.await(t, "a leads, being alone, with an alert", func(g *view.Group) bool {
			return ledBy("a")(g) && slices.ContainsFunc(g.Components["web"].Alerts, func(a view.Alert) bool { return a.Name == "SoleUnhealthy" })
		})
		c := start(t, w, "c", newDisk().check)
		w.await(t, "c leads", ledBy("c"))
		require.True(t, c.leads())
		require.False(t, a.leads())
	})
}

// The journal is told of what it needs, and not of every run.
func TestPassingRunsAreToldOnlyWhereTheyCount(t *testing.T) {
	run(t, func(t *testing.T) {
		w, d := newWorld(t, managed()), newDisk()
		start(t, w, "a", d.check)
		elapse(10 * time.Minute)
		require.Len(t, w.said(t, "health"), 1)
		d.set(true)
		elapse(25 * time.Second)
		d.set(false)
		elapse(10 * time.Minute)
		reports := w.said(t, "health")
		last := reports[len(reports)-1].Event.Data.(*journal.Health)
		require.Equal(t, "pass", last.Status)
		for _, r := range reports[1 : len(reports)-1] {
			require.Equal(t, "fail", r.Event.Data.(*journal.Health).Status)
			require.Equal(t, "no space left on device", r.Event.Data.(*journal.Health).Reason)
		}
		require.Len(t, reports, 1+2+1)
		w.read(func(g *view.Group) { require.NotZero(t, w.keys[keyOf("a")].Run) })
	})
}

// After it was cut off for so long that it counts as silent, a candidate says anew how it is.
func TestSilenceIsFollowedByAReport(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a", newDisk().check)
		w.await(t, "a is fit", fit("a"))
		a.link.set(true, false)
		w.await(t, "a is silent", func(g *view.Group) bool { return g.Candidates["a"].Rank == "" })
		a.link.set(false, false)
		w.await(t, "a is fit again", fit("a"))
		w.await(t, "a leads again", func(g *view.Group) bool { return ledBy("a")(g) && a.leads() })
	})
}

// A journal that was away is told anew how the candidate is, as soon as something else has found that out.
func TestAReconnectIsFollowedByAReport(t *testing.T) {
	run(t, func(t *testing.T) {
		w := newWorld(t, managed())
		a := start(t, w, "a", newDisk().check)
		w.await(t, "a leads", ledBy("a"))
		require.Len(t, w.said(t, "health"), 1)
		a.link.set(false, true)
		require.NoError(t, told(t, a))
		elapse(30 * time.Second)
		require.Greater(t, len(w.said(t, "health")), 1)
	})
}

// told has the leader tell that it is ready, over a link that loses the first answer.
func told(t *testing.T, s *service) error {
	back := time.AfterFunc(time.Second, func() { s.link.set(false, false) })
	defer back.Stop()
	return s.term(t).Ready(t.Context(), true, "")
}
