package server

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leadership-journal/journald/view"
)

// scrape says at each scrape how things stand.
type scrape struct {
	metrics *Metrics

	lastSequence, bytes, maxBytes, applied, active, lag *prometheus.Desc
	leaderInfo, leaderEpoch, leaderless, alerts, master *prometheus.Desc
	health                                              *prometheus.Desc
	targets                                             *targetStanding
}

func newScrape(m *Metrics) *scrape {
	return &scrape{
		metrics:      m,
		lastSequence: desc("log_last_sequence", "Newest sequence of the journal."),
		bytes:        desc("log_bytes", "Bytes that the journal takes."),
		maxBytes:     desc("log_max_bytes", "Bytes that the journal may take; a full journal takes no more."),
		applied:      desc("applied_sequence", "Newest sequence that this instance has folded."),
		active:       desc("projector_active", "1 where this instance decides and pushes."),
		lag:          desc("projector_lag_seconds", "Age of what this instance has folded last, 0 where there is nothing newer."),
		leaderInfo:   desc("leader_info", "1, with the holder of the open term as a label.", "group", "component", "candidate"),
		leaderEpoch:  desc("leader_epoch", "Epoch of the newest term.", "group", "component"),
		leaderless:   desc("leaderless_seconds_total", "Time in which nobody led though somebody could.", "group", "component"),
		health: desc("candidate_health", "1 where the checks of a candidate that has joined pass, 0 where they fail, -1 where that is not known.",
			"group", "candidate"),
		alerts: desc("alerts_active", "1 for each alert that is active; or how many are of components without series, named other.",
			"name", "group", "component"),
		master: prometheus.NewDesc("leader_election_master_status", "1 where this instance acts, as client-go has it.",
			[]string{"name"}, nil),
		targets: newTargetStanding(),
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("journald_"+name, help, labels, nil)
}

// Describe implements [prometheus.Collector].
func (s *scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.lastSequence, s.bytes, s.maxBytes, s.applied, s.active, s.lag,
		s.leaderInfo, s.leaderEpoch, s.leaderless, s.health, s.alerts, s.master,
	} {
		ch <- d
	}
	s.targets.describe(ch)
}

// Collect implements [prometheus.Collector].
func (s *scrape) Collect(ch chan<- prometheus.Metric) {
	s.metrics.mu.Lock()
	p, sampler := s.metrics.projector, s.metrics.sampler
	s.metrics.mu.Unlock()
	if p == nil {
		return // before the server is there
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	status := p.Status()
	size, err := sampler.read()
	if err == nil {
		gauge(s.lastSequence, float64(size.Last))
		gauge(s.bytes, float64(size.Bytes))
		gauge(s.maxBytes, float64(size.MaxBytes))
	}
	gauge(s.applied, float64(status.Applied))
	gauge(s.active, number(status.Active))
	gauge(s.master, number(status.Active), "journald")
	p.Read(func(v *view.View) {
		gauge(s.lag, lagOf(v, size.Last))
		s.collectView(v, ch)
	})
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func lagOf(v *view.View, last uint64) float64 {
	if v.Sequence() >= last || v.Time().IsZero() {
		return 0
	}
	return max(time.Since(v.Time()).Seconds(), 0)
}

func (s *scrape) collectView(v *view.View, ch chan<- prometheus.Metric) {
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	unnamed := map[string]int{} // alerts of components without series of their own
	for _, g := range v.Groups() {
		s.collectAlerts(ch, g.Name, "", g.Alerts)
		for _, c := range g.Components {
			if s.collectComponent(ch, g, c) {
				continue
			}
			for _, a := range c.Alerts {
				unnamed[a.Name]++
			}
		}
	}
	for name, n := range unnamed {
		ch <- prometheus.MustNewConstMetric(s.alerts, prometheus.GaugeValue, float64(n), name, other, other)
	}
	s.collectHealth(v, ch)
	s.targets.collect(v, s.metrics.target, ch)
}

// collectHealth says it of so many candidates as components may have series, the same ones each time while nobody joins.
func (s *scrape) collectHealth(v *view.View, ch chan<- prometheus.Metric) {
	left := s.metrics.opts.MaxSeries
	groups := v.Groups()
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		candidates := groups[group].Candidates
		for _, name := range slices.Sorted(maps.Keys(candidates)) {
			if candidates[name].Joined == 0 {
				continue
			}
			if left--; left < 0 {
				return
			}
			ch <- prometheus.MustNewConstMetric(s.health, prometheus.GaugeValue, healthValue(candidates[name].Rank), group, name)
		}
	}
}

func healthValue(rank string) float64 {
	switch rank {
	case "pass":
		return 1
	case "fail":
		return 0
	}
	return -1
}

// collectComponent says false of a component that has no series of its own.
func (s *scrape) collectComponent(ch chan<- prometheus.Metric, g *view.Group, c *view.Component) bool {
	t := s.metrics.component(g.Name, c.Name)
	if t == nil {
		return false
	}
	now := time.Now()
	t.leaderlessAt(c.LeaderlessSince, now)
	total := t.total
	if !t.leaderless.IsZero() {
		total += max(now.Sub(t.leaderless), 0)
	}
	ch <- prometheus.MustNewConstMetric(s.leaderless, prometheus.CounterValue, total.Seconds(), g.Name, c.Name)
	ch <- prometheus.MustNewConstMetric(s.leaderEpoch, prometheus.GaugeValue, float64(c.Epoch), g.Name, c.Name)
	if c.Term != nil {
		ch <- prometheus.MustNewConstMetric(s.leaderInfo, prometheus.GaugeValue, 1, g.Name, c.Name, c.Term.Candidate)
	}
	s.collectAlerts(ch, g.Name, c.Name, c.Alerts)
	return true
}

func (s *scrape) collectAlerts(ch chan<- prometheus.Metric, group, component string, alerts []view.Alert) {
	for _, a := range alerts {
		ch <- prometheus.MustNewConstMetric(s.alerts, prometheus.GaugeValue, 1, a.Name, group, component)
	}
}
