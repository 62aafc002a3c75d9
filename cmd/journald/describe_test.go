package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

func TestDescribeTargets(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	before := &journal.LeaderInfo{Session: "S0", Address: "http://old"}
	leader := &journal.LeaderInfo{Session: "S1", Candidate: "jm-1", Address: "http://jm-1"}
	c := &api.Component{
		Sequence: 20, Group: "g", Phase: "vacant", Observed: []string{"druid", "late"},
		TargetSpecs: []journal.Target{
			{Name: "cm", Kind: "k8s/configmap"}, {Name: "zk", Kind: "zk"}, {Name: "new", Kind: "zk"}, {Name: "gap", Kind: "zk"},
			{Name: "druid", Kind: "zk"}, {Name: "late", Kind: "zk"},
		},
		Component: view.Component{
			Name: "rest", Intent: &view.Intent{Sequence: 12, Leader: leader},
			Targets: map[string]*view.Target{
				"cm": {
					State: view.InSync, Pushed: 12, Shows: leader, Revision: 345, Fence: 14, Entry: leader, SyncSince: now.Add(-time.Minute),
					DriftTotal: 3, Holder: "h",
				},
				"zk": {
					State: view.Failing, Due: true, Pushed: 9, Shows: before, Revision: 7, Fence: 9, Entry: before, Attempts: 4,
					Error: "connection refused\x1b", FailedAt: now.Add(-10 * time.Second), RetryAfter: policy.Duration(30 * time.Second),
					OutSince: now.Add(-2 * time.Minute),
				},
				"gap":   {State: view.Unclear, Due: true, Attempts: 0, Error: "denied", OutSince: now.Add(-time.Second)},
				"druid": {Revision: 99, Entry: before, Participants: []string{"a", "b"}},
			},
		},
	}
	var out strings.Builder
	require.NoError(t, describe(&out, c, now))
	require.Equal(t, `Component:       g/rest
State:           vacant, as of record 20
Term:            none is open
Shown:           http://jm-1, session S1, candidate jm-1, by record 12
Target cm:       k8s/configmap, in-sync for 1m0s
  shows:         http://jm-1 (session S1, candidate jm-1), at revision 345 with sequence 14
  lock:          held by h
  pushed:        record 12, http://jm-1 (session S1, candidate jm-1), which is the newest
  drifted:       3 times
Target zk:       zk, failing, out of sync for 2m0s
  shows:         http://old (session S0), at revision 7 with sequence 9
  pushed:        record 9, http://old (session S0); record 12 is due
  last error:    attempt 4 failed and is tried again in 20s: connection refused?
  drifted:       0 times
Target new:      zk, nothing to show yet
Target gap:      zk, unknown, out of sync for 1s
  shows:         not known
  pushed:        nothing yet; record 12 is due
  last error:    denied (before the newest intent)
  drifted:       0 times
Target druid:    zk, only observed
  leads there:   http://old (session S0), at revision 99
  participants:  a, b
Target late:     zk, only observed, not seen yet
`, out.String())
}
