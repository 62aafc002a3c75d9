package policy_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/policy"
)

func TestOnEraseForms(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  policy.OnErase
		again string
	}{
		{`"restore"`, policy.OnErase{Default: policy.Restore}, `"restore"`},
		{`"alert"`, policy.OnErase{Default: policy.Alert}, `"alert"`},
		{` "alert" `, policy.OnErase{Default: policy.Alert}, `"alert"`},
		{`null`, policy.OnErase{Default: policy.Restore}, `"restore"`},
		{`{}`, policy.OnErase{Default: policy.Restore}, `"restore"`},
		{`{"*":"alert"}`, policy.OnErase{Default: policy.Alert}, `"alert"`},
		{
			`{"rest*":"alert"}`, policy.OnErase{Default: policy.Restore, Patterns: map[string]string{"rest*": policy.Alert}},
			`{"*":"restore","rest*":"alert"}`,
		},
		{
			`{"b":"restore","*":"alert","a":"alert"}`,
			policy.OnErase{Default: policy.Alert, Patterns: map[string]string{"a": policy.Alert, "b": policy.Restore}},
			`{"*":"alert","a":"alert","b":"restore"}`,
		},
	} {
		got := policy.OnErase{Default: "stale", Patterns: map[string]string{"old": "stale"}}
		require.NoError(t, json.Unmarshal([]byte(c.text), &got))
		require.Equal(t, c.want, got, "what was there before does not show through")
		again, err := json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, c.again, string(again))
	}
	for _, text := range []string{`7`, `true`, `["restore"]`, `{"a":7}`, `{"a":{"b":"alert"}}`} {
		var o policy.OnErase
		require.ErrorContains(t, json.Unmarshal([]byte(text), &o), `onErase is "restore", "alert" or a map from component patterns`)
	}
	var o policy.OnErase
	require.Error(t, json.Unmarshal([]byte(`{"a":"alert","a":"restore"}`), &o), "a pattern stands there once")
}

func TestOnEraseFor(t *testing.T) {
	o := policy.OnErase{Default: policy.Restore, Patterns: map[string]string{
		"rest*": policy.Alert, "restserver": policy.Restore, "r*r?": policy.Alert, "a?": policy.Alert, "?a": policy.Restore,
		"[": policy.Alert, "job-*": policy.Restore, "job-00000000000000000000000000000001": policy.Restore,
	}}
	for component, want := range map[string]string{
		"dispatcher":                           policy.Restore, // nothing matches
		"restful":                              policy.Alert,
		"restserver":                           policy.Restore, // the longer pattern
		"aa":                                   policy.Restore, // equally long: the alphabetically first
		"ab":                                   policy.Alert,
		"[":                                    policy.Restore, // not a pattern
		"job-1":                                policy.Alert,   // built in, whatever is written
		"job-":                                 policy.Alert,
		"job-00000000000000000000000000000001": policy.Alert,
		"a/job-1":                              policy.Restore,
	} {
		require.Equal(t, want, o.For(component), component)
	}
}

func TestOnEraseReadsWhatItWrites(t *testing.T) {
	word := rapid.SampledFrom([]string{policy.Restore, policy.Alert})
	pattern := rapid.StringMatching(`[a-z?-]{1,5}\*?`).Filter(func(s string) bool { return s != "*" })
	rapid.Check(t, func(t *rapid.T) {
		want := policy.OnErase{Default: word.Draw(t, "default")}
		if m := rapid.MapOfN(pattern, word, 0, 4).Draw(t, "patterns"); len(m) > 0 {
			want.Patterns = m
		}
		text, err := json.Marshal(want)
		require.NoError(t, err)
		var got policy.OnErase
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, want, got)
		again, err := json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		component := rapid.StringMatching(`[a-z-]{1,6}`).Draw(t, "component")
		require.Equal(t, want.For(component), got.For(component))
	})
}
