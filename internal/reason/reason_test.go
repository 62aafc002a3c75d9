package reason_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/internal/reason"
	"github.com/leadership-journal/journald/journal"
)

func TestOf(t *testing.T) {
	text := " no\nspace\x00left\xff\n"
	require.Equal(t, "no; space left?", reason.Of(errors.New(text)))
	require.Equal(t, "failed, and did not say why", reason.Of(errors.New("")))
	require.Equal(t, "01234567 … hij", reason.Shorten("0123456789abcdefghij", 8))
}

func TestTheContractTakesEveryReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 6000).Draw(t, "text"))
		got := reason.Of(errors.New(text))
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), 1000)
		e := journal.Event{ID: "i", Source: "candidate/c", Group: "g", Data: &journal.Leave{Candidate: "c", Incarnation: "i", Reason: got}}
		require.NoError(t, e.Validate())
	})
}
