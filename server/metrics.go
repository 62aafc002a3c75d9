package server

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

// MetricsOptions are what [Metrics] are made of.
type MetricsOptions struct {
	Since     uint64 // newest sequence at the start: records up to it are not counted as appended
	MaxSeries int    // components with series of their own
	Version   string
	Revision  string
}

// Metrics counts what happens, and says at each scrape how things stand. It is a [projector.Meter].
//
// Labels are closed sets or configured names. Series by component are limited, so that a client that makes names up
// does not fill the monitoring.
type Metrics struct {
	opts MetricsOptions

	appendedTotal  *prometheus.CounterVec
	appendDuration prometheus.Histogram
	verdicts       *prometheus.CounterVec
	pushes         *prometheus.CounterVec
	pushDuration   *prometheus.HistogramVec
	publishLag     *prometheus.HistogramVec
	terms          *prometheus.CounterVec
	build          *prometheus.GaugeVec

	mu         sync.Mutex
	targets    map[string]struct{}     // names that have series
	components map[componentKey]*tally // components that have series
	intents    map[uint64]time.Time    // when the newest intents were appended
	order      [mostIntents]uint64     // of them, as a ring
	oldest     int

	projector *projector.Projector
	sampler   *sampler
}

type componentKey struct{ group, component string }

// tally is what is counted of one component.
type tally struct {
	epoch      uint64    // of the open term
	leaderless time.Time // since when nobody leads
	total      time.Duration
}

const (
	mostTargets = 200
	mostIntents = 4096
	other       = "other"
)

// NewMetrics makes the counters and registers everything.
func NewMetrics(registerer prometheus.Registerer, opts MetricsOptions) (*Metrics, error) {
	seconds := prometheus.ExponentialBuckets(0.0002, 2.5, 12)
	m := &Metrics{
		opts: opts, targets: map[string]struct{}{}, components: map[componentKey]*tally{}, intents: map[uint64]time.Time{},
		appendedTotal: counter("events_appended_total", "Events stored in the journal since this process started.", "kind"),
		appendDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "journald_append_duration_seconds", Help: "From an accepted request to its events being on disk.", Buckets: seconds}),
		verdicts:     counter("verdicts_total", "Records folded since this process started, by what they did.", "kind", "verdict"),
		pushes:       counter("pushes_total", "Attempts to write a target.", "target", "outcome"),
		pushDuration: histogram("push_duration_seconds", "Time that one attempt to write a target took.", seconds),
		publishLag:   histogram("publish_lag_seconds", "From an intent being appended to a target showing it.", seconds),
		terms:        counter("terms_total", "Terms that ended, by why.", "group", "component", "reason"),
		build: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "journald_build_info", Help: "1, with the version as labels."}, []string{"version", "revision"}),
	}
	m.build.WithLabelValues(opts.Version, opts.Revision).Set(1)
	all := []prometheus.Collector{
		m.appendedTotal, m.appendDuration, m.verdicts, m.pushes, m.pushDuration, m.publishLag, m.terms, m.build, newScrape(m),
	}
	var errs []error
	for _, c := range all {
		errs = append(errs, registerer.Register(c))
	}
	return m, errors.Join(errs...)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "journald_" + name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "journald_" + name, Help: help, Buckets: buckets}, []string{"target"})
}

// attach says where the standing can be read.
func (m *Metrics) attach(p *projector.Projector, s *sampler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.projector, m.sampler = p, s
}

func (m *Metrics) appended(took time.Duration) { m.appendDuration.Observe(took.Seconds()) }

// Applied counts a record.
func (m *Metrics) Applied(r *journal.Record, result view.Result) {
	kind := "invalid"
	if r.Err == nil {
		kind = r.Event.Data.Kind()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Sequence > m.opts.Since {
		m.appendedTotal.WithLabelValues(kind).Inc()
		m.verdicts.WithLabelValues(kind, string(result.Verdict)).Inc()
	}
	m.lag(r, result)
	if result.Component != nil {
		m.tally(r, result)
	}
}

// lag measures from the record of an intent to the first push record that says it is shown.
func (m *Metrics) lag(r *journal.Record, result view.Result) {
	switch d := r.Event.Data.(type) {
	case *journal.Confirm, *journal.Withdraw, *journal.Watch:
		if c := result.Component; c == nil || c.Intent == nil || c.Intent.Sequence != r.Sequence {
			return
		}
		delete(m.intents, m.order[m.oldest])
		m.intents[r.Sequence], m.order[m.oldest] = r.Time, r.Sequence
		m.oldest = (m.oldest + 1) % mostIntents
	case *journal.Push:
		if at, ok := m.intents[d.Intent]; ok && d.Outcome == journal.OK && result.Verdict == view.Applied && r.Sequence > m.opts.Since {
			m.publishLag.WithLabelValues(m.target(d.Target)).Observe(r.Time.Sub(at).Seconds())
		}
	}
}

// target is a name as a label, of which there are not too many.
func (m *Metrics) target(name string) string {
	if name == "" {
		return projector.BuiltIn
	}
	if _, known := m.targets[name]; !known {
		if len(m.targets) >= mostTargets {
			return other
		}
		m.targets[name] = struct{}{}
	}
	return name
}

// component is the tally of a component that has series, nil for one that hasn't.
func (m *Metrics) component(group, component string) *tally {
	key := componentKey{group, component}
	t := m.components[key]
	if t == nil && len(m.components) < m.opts.MaxSeries {
		t = &tally{}
		m.components[key] = t
	}
	return t
}

func (m *Metrics) tally(r *journal.Record, result view.Result) {
	g, c := result.Group.Name, result.Component
	t := m.component(g, c.Name)
	if t == nil {
		return
	}
	t.leaderlessAt(c.LeaderlessSince, r.Time)
	now := uint64(0)
	if c.Term != nil {
		now = c.Term.Epoch
	}
	if t.epoch != 0 && t.epoch != now && r.Sequence > m.opts.Since {
		m.terms.WithLabelValues(g, c.Name, ending(r)).Inc()
	}
	t.epoch = now
}

// ending is why a term ended, as one of a closed set.
func ending(r *journal.Record) string {
	revoke, ok := r.Event.Data.(*journal.Revoke)
	if !ok {
		return "superseded"
	}
	if slices.Contains([]string{"lost", "yielded", "shutdown", "expired", "confirm-timeout"}, revoke.Reason) {
		return revoke.Reason
	}
	return other
}

// leaderlessAt adds up the time without a leader.
func (t *tally) leaderlessAt(since, now time.Time) {
	if !t.leaderless.IsZero() && !t.leaderless.Equal(since) {
		end := now
		if !since.IsZero() {
			end = since
		}
		t.total += max(end.Sub(t.leaderless), 0)
	}
	t.leaderless = since
}

// Pushed counts one attempt to write a target.
func (m *Metrics) Pushed(o projector.Object, err error, _ projector.Receipt, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	target := m.target(o.Target)
	m.pushes.WithLabelValues(target, outcome(err)).Inc()
	m.pushDuration.WithLabelValues(target).Observe(took.Seconds())
}

func outcome(err error) string {
	switch {
	case err == nil:
		return journal.OK
	case errors.Is(err, projector.ErrSuperseded):
		return journal.Superseded
	case errors.Is(err, projector.ErrUnknownOutcome):
		return journal.Unknown
	case errors.Is(err, projector.ErrConflict):
		return "conflict"
	}
	return journal.Failed
}
