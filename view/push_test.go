package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// TestWhenAPushFailedIsKnownUntilOneSucceeds, which together with the wait says when it is tried again.
func TestWhenAPushFailedIsKnownUntilOneSucceeds(t *testing.T) {
	f := newFolder(t)
	f.fold("g", "", "projector/p", &journal.Policy{
		Policy: rules(), Order: order(), Decision: &journal.Decision{Projector: 1}, Targets: &[]journal.Target{{Name: "cm", Kind: "k8s/configmap"}},
	})
	f.service("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	f.service("rest", &journal.Confirm{Candidate: "jm-1", Session: "S1", Address: "a", Attempt: 1})
	attempt := 0
	push := func(outcome, why string) *view.Target {
		attempt++
		f.now = f.now.Add(time.Minute)
		p := &journal.Push{
			Target: "cm", Intent: f.component("rest").Intent.Sequence, Attempt: attempt, Outcome: outcome, Error: why, Revision: 9,
			Decision: journal.Decision{Projector: 1, Basis: f.v.Group("g").Version},
		}
		if outcome != journal.OK && outcome != journal.Superseded {
			p.RetryAfter = policy.Duration(time.Second)
		}
		require.NotEqual(t, view.Void, f.fold("g", "rest", "projector/p", p).Verdict)
		return f.component("rest").Targets["cm"]
	}
	for _, outcome := range []string{journal.Failed, journal.Unknown, journal.Superseded} {
		require.Equal(t, f.now.Add(time.Minute), push(outcome, "no").FailedAt, outcome)
	}
	require.Zero(t, push(journal.OK, "").FailedAt)
	push(journal.Failed, "no")
	f.fold("g", "rest", "observer/o", &journal.Watch{
		Target: "cm", Revision: 10, Sequence: 4, Entry: &journal.LeaderInfo{Session: "S1", Address: "a"},
	})
	target := f.component("rest").Targets["cm"]
	require.Equal(t, view.InSync, target.State)
	require.Empty(t, target.Error)
	require.Zero(t, target.FailedAt, "it was seen to be right")
}
