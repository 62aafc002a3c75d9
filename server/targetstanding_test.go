package server_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

// scrape is every series of /metrics with its value.
func (h *harness) scrape() map[string]float64 {
	h.tb.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(h.do("GET", "/metrics", "", "").body) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		require.NoError(h.tb, err, line)
		all[line[:i]] = value
	}
	return all
}

func (h *harness) targetState(target string) (states map[string]float64) {
	h.tb.Helper()
	states = map[string]float64{}
	all := h.scrape()
	for _, state := range []string{view.InSync, view.Pending, view.Failing, view.Drifted, view.Unclear} {
		series := fmt.Sprintf(`journald_target_state{state=%q,target=%q}`, state, target)
		require.Contains(h.tb, all, series, "every state has a series, or alerts on it would not work")
		if n := all[series]; n > 0 {
			states[state] = n
		}
	}
	return states
}

// TestTargetMetrics has one target that works, one that fails, one that is drifted by an observation, and two that are
// only watched.
func TestTargetMetrics(t *testing.T) {
	works, fails := newMemory(), newMemory()
	close(works.open)
	close(fails.open)
	fails.refuse = errors.New("refused")
	h := start(t, options{
		settings: shownBy(cm(), journal.Target{Name: "bad", Kind: "test"}, journal.Target{Name: "druid", Kind: "test", Observe: true},
			journal.Target{Name: "own", Kind: "test", Guarded: true}),
		connect: func(_ string, spec journal.Target) (projector.Target, error) {
			if spec.Name == "bad" {
				return fails, nil
			}
			return works, nil
		},
	})
	h.say(grantS1, confirmS1, `{"kind":"grant","group":"flink","component":"idle","candidate":"x","session":"S"}`,
		`{"kind":"watch","group":"flink","component":"idle","target":"cm","revision":1,"entry":null}`)
	state := func(target string) (t view.Target) {
		h.projector.Read(func(v *view.View) {
			if known := v.Group("flink").Components["rest"].Targets[target]; known != nil {
				t = *known
			}
		})
		return t
	}
	h.until(func() bool { return state("cm").State == view.InSync && state("bad").Attempts > 0 })
	require.Equal(t, map[string]float64{view.InSync: 1}, h.targetState("cm"), "what has nothing to show is in no state")
	require.Equal(t, map[string]float64{view.Failing: 1}, h.targetState("bad"))
	all := h.scrape()
	require.Zero(t, all[`journald_target_drift_total{target="cm"}`])
	require.Zero(t, all[`journald_target_attempts{target="cm"}`])
	require.Zero(t, all[`journald_target_out_of_sync_seconds{target="cm"}`])
	require.Positive(t, all[`journald_target_attempts{target="bad"}`])
	require.Positive(t, all[`journald_target_out_of_sync_seconds{target="bad"}`])
	require.Positive(t, all[`journald_pushes_total{outcome="ok",target="cm"}`])
	require.Positive(t, all[`journald_pushes_total{outcome="failed",target="bad"}`])
	require.Positive(t, all[`journald_push_duration_seconds_count{target="cm"}`])
	require.Positive(t, all[`journald_publish_lag_seconds_count{target="cm"}`])

	acks := h.say(`{"kind":"watch","group":"flink","target":"cm","revision":0,"entry":null,"gap":true}`)
	require.Equal(t, view.Applied, acks[0].Verdict, acks[0].Reason)
	require.Equal(t, map[string]float64{view.Unclear: 1}, h.targetState("cm"))
	h.say(`{"kind":"watch","group":"flink","component":"rest","target":"cm","revision":2,"sequence":1,"entry":null}`,
		`{"kind":"watch","group":"flink","component":"idle","target":"cm","revision":2,"entry":null}`,
		`{"kind":"watch","group":"flink","target":"druid","revision":0,"entry":null,"gap":true}`,
		`{"kind":"watch","group":"flink","component":"rest","target":"druid","revision":1,"entry":null}`)
	require.InDelta(t, 1, h.scrape()[`journald_target_drift_total{target="cm"}`], 0)
	h.until(func() bool { return state("cm").State == view.InSync })

	for series := range h.scrape() {
		require.NotContains(t, series, `target="druid"`)
		require.NotContains(t, series, `target="own"`)
	}
	require.Contains(t, h.do("GET", "/readyz?verbose", "", "").body, "[!] targets: 1 failing, 0 drifted, 0 unknown")
	families, err := h.registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestTargetSeriesAreLimited has more names of targets than there may be labels.
func TestTargetSeriesAreLimited(t *testing.T) {
	settings := projector.Settings{Defaults: policy.Default(), Groups: map[string]projector.Group{}}
	for i := range 30 {
		var targets []journal.Target
		for j := range 10 {
			targets = append(targets, journal.Target{Name: fmt.Sprintf("t%d-%d", i, j), Kind: "test"})
		}
		settings.Groups[fmt.Sprintf("g%d", i)] = projector.Group{Policy: policy.Default(), Targets: targets}
	}
	h := start(t, options{settings: settings})
	h.until(func() bool {
		configured := 0
		h.projector.Read(func(v *view.View) {
			for _, g := range v.Groups() {
				if g.Configured > 0 {
					configured++
				}
			}
		})
		return configured == len(settings.Groups)
	})
	states := 0
	for series := range h.scrape() {
		if strings.HasPrefix(series, "journald_target_state{") {
			states++
		}
	}
	require.Equal(t, 5*201, states)
}
