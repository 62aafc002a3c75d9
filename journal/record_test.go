package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

func TestNewRecord(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		raw, err := e.Encode()
		require.NoError(t, err)
		r := journal.NewRecord(9, at(5), e.Subject(), raw)
		require.Equal(t, journal.Record{Sequence: 9, Time: at(5), Subject: e.Subject(), Raw: raw, Event: e}, r)
	})
}

// What stands on another subject than its own, if only spelled otherwise, is kept with an error.
func TestNewRecordRefusesOtherSubjects(t *testing.T) {
	e := sample("grant")
	e.Component = "job-1/x"
	raw, err := e.Encode()
	require.NoError(t, err)
	require.NoError(t, journal.NewRecord(1, at(0), "leadership.flink-1.job-1%2Fx.grant", raw).Err)
	for _, subject := range []string{
		"leadership.flink-1.job-1%2fx.grant", "leadership.flink-1.job-1/x.grant", "leadership.flink%2D1.job-1%2Fx.grant",
		"leadership.flink-2.job-1%2Fx.grant", "leadership.flink-1._.grant", "leadership.flink-1.job-1%2Fx.revoke", "leadership.g._.raw", "",
	} {
		r := journal.NewRecord(1, at(0), subject, raw)
		requireFault(t, r.Err, "subject", "the event belongs on leadership.flink-1.job-1%2Fx.grant, not on "+subject)
		require.Equal(t, raw, r.Raw)
		require.Equal(t, e, r.Event, "what it says can still be read")
	}
}

func TestNewRecordKeepsGarbage(t *testing.T) {
	for _, text := range []string{"this is not JSON {{{", `{"specversion":"1.0","id":"b7"`, "", "null", "\x00\xff"} {
		r := journal.NewRecord(3, at(0), "leadership.g._.raw", []byte(text))
		require.ErrorIs(t, r.Err, journal.ErrInvalid)
		require.Equal(t, text, string(r.Raw))
		require.Equal(t, uint64(3), r.Sequence)
	}
}
