package projector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

func TestDriftIsToldOnceAMinute(t *testing.T) {
	logger, out := heard()
	s := newSightings(logger)
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	c := &view.Component{Name: "rest"}
	drift := func(target string) {
		sequence := uint64(20 + len(c.Anomalies))
		c.Anomalies = append(c.Anomalies, view.Anomaly{Name: "drift", Detail: "x", Sequences: []uint64{12, sequence}})
		r := &journal.Record{Sequence: sequence, Event: journal.Event{Data: &journal.Watch{Target: target, Revision: 7}}}
		for _, tell := range s.folded(r, view.Result{Group: &view.Group{Name: "g"}, Component: c}, now) {
			tell()
		}
		now = now.Add(time.Second)
	}
	for range 61 {
		drift("cm")
	}
	drift("lease")
	line := "level=WARN msg=\"an anomaly was seen\" group=g sequence=%d component=rest target=%s revision=7 anomaly=drift detail=x untold=%d\n"
	require.Equal(t, fmt.Sprintf(line, 20, "cm", 0)+fmt.Sprintf(line, 80, "cm", 59)+fmt.Sprintf(line, 81, "lease", 0), out.String())
}

func TestWhatARecordDidNotShowIsNotTold(t *testing.T) {
	logger, out := heard()
	s := newSightings(logger)
	g := &view.Group{Name: "g", Anomalies: []view.Anomaly{
		{Name: "duplicate-identity", Sequences: []uint64{4}}, {Name: "duplicate-identity", Sequences: []uint64{9}},
	}}
	c := &view.Component{Name: "rest", Anomalies: []view.Anomaly{{Name: "drift", Sequences: []uint64{8}}}}
	for sequence, want := range map[uint64]int{3: 0, 4: 0, 9: 1, 10: 0} { // 4 was told when it came
		r := &journal.Record{Sequence: sequence, Event: journal.Event{Data: &journal.Health{}}}
		require.Len(t, s.folded(r, view.Result{Group: g, Component: c}, time.Time{}), want, sequence)
	}
	require.Empty(t, s.folded(&journal.Record{Sequence: 9}, view.Result{}, time.Time{}))
	require.Empty(t, out.String())
}

func TestGaps(t *testing.T) {
	logger, out := heard()
	s := newSightings(logger)
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for i := range 1000 {
		s.gap("g", "lease", Observation{Component: fmt.Sprintf("job-%d", i), Gap: true}, true, now)
	}
	require.Empty(t, out.String(), "that watches begin is nothing to be told")
	for i := range 1000 {
		s.gap("g", "lease", Observation{Component: fmt.Sprintf("job-%d", i), Gap: true}, false, now)
	}
	s.gap("g", "lease", Observation{Component: "job-0", Gap: true}, false, now.Add(toldAgain))
	require.Equal(t, `level=INFO msg="a watch begins anew, and may have missed something" group=g target=lease component=job-0 untold=0
level=INFO msg="a watch begins anew, and may have missed something" group=g target=lease component=job-0 untold=999
`, out.String())
}

func TestWhatWasToldIsNotRememberedForEver(t *testing.T) {
	logger, out := heard()
	s := newSightings(logger)
	for i := range 3 * mostTold {
		s.gap("g", fmt.Sprintf("t%d", i), Observation{Gap: true}, false, time.Time{})
	}
	require.LessOrEqual(t, len(s.told), mostTold)
	require.Equal(t, 3*mostTold, strings.Count(out.String(), "INFO"))
}
