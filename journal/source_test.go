package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

func TestSourceOf(t *testing.T) {
	order := journal.Order{Actor: "lin", Reason: "test"}
	for want, data := range map[string][]journal.Data{
		"candidate/jm-1": {
			&journal.Join{Candidate: "jm-1"}, &journal.Leave{Candidate: "jm-1"}, &journal.Grant{Candidate: "jm-1"},
			&journal.Revoke{Candidate: "jm-1"}, &journal.Confirm{Candidate: "jm-1"}, &journal.Health{Candidate: "jm-1"},
		},
		"operator/lin": {
			&journal.Transfer{Order: order}, &journal.Exclude{Order: order}, &journal.Include{Order: order},
			&journal.Pause{Order: order}, &journal.Resume{Order: order}, &journal.Policy{Order: order}, &journal.Withdraw{Actor: "lin"},
		},
		"":                              {&journal.Ready{}, &journal.Watch{}, &journal.Revoke{}, &journal.Withdraw{}, &journal.Pause{}, &journal.Takeover{}},
		"candidate/http:%2F%2Fa%20b%7C": {&journal.Join{Candidate: "http://a b|"}},
	} {
		for _, d := range data {
			require.Equal(t, want, journal.SourceOf(d), d.Kind())
		}
	}
}
