package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

// The same instance, restarted within the de-duplication window, decides again what was void the first time. Were the
// ids the same, the second decision would be taken for the first one, and never be made.
func TestADecisionOfALaterEpochIsAnotherRecord(t *testing.T) {
	decide := func(epoch, basis uint64) string {
		p := Proposal{Group: "g", Component: "rest", Basis: basis, Data: []journal.Data{&journal.Alert{Name: noLeader, Reason: "test"}}}
		return p.Events("projector/journald-0", epoch, time.Unix(0, 0))[0].ID
	}
	once, again := decide(5, 7), decide(5, 7)
	require.Equal(t, once, again)
	require.NotEqual(t, once, decide(6, 7))
	require.NotEqual(t, once, decide(5, 8))
}
