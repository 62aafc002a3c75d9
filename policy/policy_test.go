package policy_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/policy"
)

var update = flag.Bool("update", false, "write the golden file anew")

// The defaults are frozen: a change would change what old journals mean.
func TestDefaultIsFrozen(t *testing.T) {
	path := filepath.Join("testdata", "default.json")
	text, err := json.Marshal(policy.Default(), jsontext.WithIndent("  "))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, append(text, '\n'), 0o644))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./policy -update writes it")
	require.Equal(t, string(golden), string(text)+"\n")

	var read policy.Policy
	require.NoError(t, json.Unmarshal(golden, &read, json.RejectUnknownMembers(true)))
	require.Equal(t, policy.Default(), read)
	require.NoError(t, read.Validate())
}

// fields are what an error of Validate is about, line by line.
func fields(err error) []string {
	var all []string
	for line := range strings.Lines(err.Error()) {
		field, _, _ := strings.Cut(line, ":")
		all = append(all, field)
	}
	return all
}

func TestValidateNamesEveryWrongFieldAtOnce(t *testing.T) {
	var zero policy.Policy
	require.Equal(t, []string{
		"election", "authority", "onRevoke", "confirmWithin", "leaderlessAfter", "graceAfterErase", "flapping",
		"health.period", "health.staleAfter", "health.holdDown", "health.window",
		"health.failureThreshold", "health.successThreshold", "health.maxYields", "health.silentLeader",
		"lease.duration", "lease.renewEvery", "lease.releaseWithin", "lease.renewEvery", "onErase",
	}, fields(zero.Validate()))
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*policy.Policy)
	}{
		{`election: "Managed" is none of ["external" "managed"]`, func(p *policy.Policy) { p.Election = "Managed" }},
		{`authority: "both" is none of ["journal" "backend"]`, func(p *policy.Policy) { p.Authority = "both" }},
		{`onRevoke: "" is none of ["retain" "clear"]`, func(p *policy.Policy) { p.OnRevoke = "" }},
		{`confirmWithin: -1s is not a positive duration`, func(p *policy.Policy) { p.ConfirmWithin = -policy.Duration(time.Second) }},
		{`leaderlessAfter: 0s is not a positive duration; write it like 30s or 10m`, func(p *policy.Policy) { p.LeaderlessAfter = 0 }},
		{`graceAfterErase: 0s`, func(p *policy.Policy) { p.GraceAfterErase = 0 }},
		{`flapping: 0 is less than 1`, func(p *policy.Policy) { p.Flapping = 0 }},
		{`health.period: 0s`, func(p *policy.Policy) { p.Health.Period = 0 }},
		{`health.staleAfter: 0s`, func(p *policy.Policy) { p.Health.StaleAfter = 0 }},
		{`health.holdDown: 0s`, func(p *policy.Policy) { p.Health.HoldDown = 0 }},
		{`health.window: 0s`, func(p *policy.Policy) { p.Health.Window = 0 }},
		{`health.failureThreshold: 0 is less than 1`, func(p *policy.Policy) { p.Health.FailureThreshold = 0 }},
		{`health.successThreshold: -1 is less than 1`, func(p *policy.Policy) { p.Health.SuccessThreshold = -1 }},
		{`health.maxYields: 0 is less than 1`, func(p *policy.Policy) { p.Health.MaxYields = 0 }},
		{`health.silentLeader: "kill" is none of ["hold" "yield"]`, func(p *policy.Policy) { p.Health.SilentLeader = "kill" }},
		{`lease.renewEvery: 0s`, func(p *policy.Policy) { p.Lease.RenewEvery = 0 }},
		{`lease.renewEvery: 15s is not shorter than lease.duration 15s`, func(p *policy.Policy) { p.Lease.RenewEvery = p.Lease.Duration }},
		{`lease.releaseWithin: 0s`, func(p *policy.Policy) { p.Lease.ReleaseWithin = 0 }},
		{`onErase: "keep" is none of ["restore" "alert"]`, func(p *policy.Policy) { p.OnErase.Default = "keep" }},
		{`onErase.rest*: "" is none of`, func(p *policy.Policy) { p.OnErase.Patterns = map[string]string{"rest*": ""} }},
		{`onErase: pattern "[": syntax error in pattern`, func(p *policy.Policy) { p.OnErase.Patterns = map[string]string{"[": policy.Alert} }},
	} {
		p := policy.Default()
		c.change(&p)
		err := p.Validate()
		require.ErrorContains(t, err, c.want)
		require.Len(t, fields(err), 1, "%v", err)
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"},
		{time.Nanosecond, "1ns"},
		{30 * time.Second, "30s"},
		{90 * time.Second, "1m30s"},
		{10 * time.Minute, "10m"},
		{20 * time.Minute, "20m"},
		{time.Hour, "1h"},
		{10 * time.Hour, "10h"},
		{time.Hour + 10*time.Minute, "1h10m"},
		{time.Hour + time.Second, "1h0m1s"},
		{100 * time.Hour, "100h"},
		{-time.Minute, "-1m"},
		{1500 * time.Millisecond, "1.5s"},
		{1<<63 - 1, "2562047h47m16.854775807s"},
		{-1 << 63, "-2562047h47m16.854775808s"},
	} {
		require.Equal(t, c.want, policy.Duration(c.d).String())
	}
}

func TestDurationReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		want := policy.Duration(rapid.Int64Range(-100000, 100000).Draw(t, "n") * int64(unit))
		text, err := json.Marshal(want)
		require.NoError(t, err)
		var got policy.Duration
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, want, got)
		parsed, err := time.ParseDuration(want.String())
		require.NoError(t, err)
		require.Equal(t, time.Duration(want), parsed)
	})
}

func TestDurationRefusesWhatHasNoUnit(t *testing.T) {
	for _, text := range []string{"", "30", "30 s", "s", "1d", "abc", "1h-1m", "9999999h", "∞"} {
		d := policy.Duration(7)
		require.ErrorContains(t, d.UnmarshalText([]byte(text)), "is no duration; write it like 30s or 10m")
		require.Equal(t, policy.Duration(7), d)
	}
	var d policy.Duration
	require.Error(t, json.Unmarshal([]byte(`30`), &d), "a bare number has no unit")
	err := d.UnmarshalText([]byte(strings.Repeat("9", 1<<20)))
	require.Error(t, err)
	require.Less(t, len(err.Error()), 200)
}
