package sse_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/sse"
)

func readAll(text string) (all []sse.Event, err error) {
	r := sse.NewReader(strings.NewReader(text), func() {})
	for {
		e, err := r.Next()
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

func TestServerSentEvents(t *testing.T) {
	for text, want := range map[string][]sse.Event{
		"":                                       nil,
		": comment\n\n":                          nil,
		"id: 1\n\n":                              nil,
		"id: 7\ndata: a\n\ndata: b\n\n":          {{ID: "7", Data: "a"}, {Data: "b"}},
		"event: x\n\ndata: a\n\n":                {{Data: "a"}},
		"data: a\n\ndata:b\n\n":                  {{Data: "a"}, {Data: "b"}},
		"data: a\r\ndata:  b\r\n\r\n":            {{Data: "a\n b"}},
		"event: x\nid: 4\nretry: 10\ndata\n\n":   {{ID: "4", Name: "x"}},
		"data: whole\n\ndata: cut off by the en": {{Data: "whole"}},
		"data: whole\n\ndata: cut off\n":         {{Data: "whole"}},
		"other: 1\ndata: {\"a\": 1}\n\n":         {{Data: `{"a": 1}`}},
	} {
		got, err := readAll(text)
		require.ErrorIs(t, err, sse.ErrEnded)
		require.Equal(t, want, got, "%q", text)
	}
	_, err := readAll("data: " + strings.Repeat("x", sse.MaxLine))
	require.ErrorContains(t, err, "too long")
}

func FuzzServerSentEvents(f *testing.F) {
	f.Add("id: 1\ndata: {\"sequence\":1}\n\n: still here\n\n")
	f.Add("event: problem\r\ndata\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		events, err := readAll(text)
		require.Error(t, err)
		for _, e := range events {
			require.NotContains(t, e.Name, "\n")
			require.LessOrEqual(t, len(e.Data), len(text))
		}
		again, _ := readAll(text + "\n: more\n")
		require.GreaterOrEqual(t, len(again), len(events), "what comes after changes nothing before it")
		require.Equal(t, events, append([]sse.Event(nil), again[:len(events)]...))
	})
}
