package server

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leadership-journal/journald/view"
)

// targetStanding says how far the targets are: by name, over all groups and components, so that there are as many
// series as names.
type targetStanding struct {
	state, drift, attempts, outOfSync *prometheus.Desc
}

func newTargetStanding() *targetStanding {
	return &targetStanding{
		state:     desc("target_state", "Components for which a target is in this state.", "target", "state"),
		drift:     desc("target_drift_total", "Times that a target was seen to show something else.", "target"),
		attempts:  desc("target_attempts", "Attempts at an intent that a target does not show yet, the most of any component.", "target"),
		outOfSync: desc("target_out_of_sync_seconds", "How long a target has been out of sync, the longest of any component.", "target"),
	}
}

func (s *targetStanding) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.state, s.drift, s.attempts, s.outOfSync} {
		ch <- d
	}
}

// targetStates are all that a target can be in for a component.
func targetStates() []string {
	return []string{view.InSync, view.Pending, view.Failing, view.Drifted, view.Unclear}
}

// targetTally is what is summed up of one name.
type targetTally struct {
	states   map[string]int
	drifts   int
	attempts int
	out      time.Duration
}

// collect takes each name as label has it.
func (s *targetStanding) collect(v *view.View, label func(string) string, ch chan<- prometheus.Metric) {
	tallies, now := map[string]*targetTally{}, time.Now()
	for _, g := range v.Groups() {
		for i := range g.Targets {
			spec := &g.Targets[i]
			if !g.Keeps(spec) {
				continue
			}
			name := label(spec.Name)
			if tallies[name] == nil {
				tallies[name] = &targetTally{states: map[string]int{}}
			}
			for _, c := range g.Components {
				if t := c.Targets[spec.Name]; t != nil && c.Intent != nil {
					tallies[name].add(t, now)
				}
			}
		}
	}
	for name, t := range tallies {
		s.send(ch, name, t)
	}
}

func (t *targetTally) add(one *view.Target, now time.Time) {
	t.states[cmp.Or(one.State, view.Pending)]++
	t.drifts += one.DriftTotal
	if one.State != view.InSync {
		t.attempts = max(t.attempts, one.Attempts)
	}
	if !one.OutSince.IsZero() {
		t.out = max(t.out, now.Sub(one.OutSince))
	}
}

func (s *targetStanding) send(ch chan<- prometheus.Metric, name string, t *targetTally) {
	for _, state := range targetStates() {
		ch <- prometheus.MustNewConstMetric(s.state, prometheus.GaugeValue, float64(t.states[state]), name, state)
	}
	ch <- prometheus.MustNewConstMetric(s.drift, prometheus.CounterValue, float64(t.drifts), name)
	ch <- prometheus.MustNewConstMetric(s.attempts, prometheus.GaugeValue, float64(t.attempts), name)
	ch <- prometheus.MustNewConstMetric(s.outOfSync, prometheus.GaugeValue, t.out.Seconds(), name)
}
