package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
)

func (h *harness) candidates() map[string]*api.CandidateRow {
	h.tb.Helper()
	var page api.Groups
	h.get("/v1/groups", &page)
	all := map[string]*api.CandidateRow{}
	for _, k := range page.Groups[0].Candidates {
		all[k.Name] = &k
	}
	return all
}

// TestCandidatesAreExplained has a candidate go through all that keeps one from being chosen.
func TestCandidatesAreExplained(t *testing.T) {
	h := staffed(t)
	all := h.candidates()
	require.Equal(t, []string{"rest"}, all["jm-1"].Leads)
	require.Empty(t, all["jm-1"].Remarks())
	require.Equal(t, "pass", all["jm-1"].Health)
	k := all["jm-4"]
	require.Equal(t, "unknown (1 failed)", k.Condition())
	require.Equal(t, []string{"disk: full"}, k.Remarks())
	require.WithinDuration(t, time.Now(), k.LastRun, time.Minute)

	h.say(`{"kind":"exclude","group":"flink","candidate":"jm-2","until":"2100-01-01T00:00:00Z",` + byAlice + `}`)
	k = h.candidates()["jm-2"]
	require.Equal(t, []string{"excluded until 2100-01-01T00:00:00Z"}, k.Remarks())

	h.say(`{"kind":"transfer","group":"flink","component":"rest",` + byAlice + `}`)
	h.until(func() bool { return h.component().Term.Yield != nil })
	k = h.candidates()["jm-1"]
	require.Equal(t, []string{"told to give up rest"}, k.Remarks())
	var page api.Groups
	h.get("/v1/groups", &page)
	require.Equal(t, "jm-3", page.Groups[0].Components[0].Yield.To)
	require.Contains(t, page.Groups[0].Components[0].Remarks(), "told to yield to jm-3: upgrade")

	h.say(`{"kind":"grant","group":"flink","component":"rest","candidate":"jm-3","session":"S3"}`)
	k = h.candidates()["jm-1"]
	require.Contains(t, k.Remarks(), "not known to have stopped rest")
	require.True(t, k.HeldDown)
	require.False(t, k.HeldDownUntil.IsZero(), "an operator moved it: time ends that")

	c := h.component()
	require.Equal(t, "jm-4", c.Candidates[len(c.Candidates)-1].Name)
	obstacles := map[string][]string{}
	for _, chance := range c.Chances {
		for _, o := range chance.Obstacles {
			obstacles[chance.Candidate] = append(obstacles[chance.Candidate], o.Name)
		}
	}
	require.Equal(t, map[string][]string{
		"jm-1": {"stopping", "held-down"}, "jm-2": {"excluded"}, "jm-3": {"leads"}, "jm-4": {"unknown"},
	}, obstacles)
}
