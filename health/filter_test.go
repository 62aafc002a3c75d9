package health_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/health"
)

// told are the runs of a story that the journal is told of: p passes, f fails, s is the journal's word that the candidate
// is stale, or a reconnect.
func told(f *health.Filter, story string) string {
	var all []rune
	for _, c := range story {
		switch {
		case c == 's':
			f.Anew()
		case f.Tell(health.Result{Check: "a", Pass: c == 'p'}):
			all = append(all, c)
		default:
			all = append(all, '.')
		}
	}
	return string(all)
}

func TestWhatTheJournalIsTold(t *testing.T) {
	for _, c := range []struct {
		threshold   int
		story, told string
	}{
		{1, "pppp", "p..."},
		{1, "ppfffpp", "p.fffp."},
		{2, "pppfpfpppp", "pp.fpfpp.."},
		{1, "ppsppfs", "p.p.f"},
		{2, "ppppspppp", "pp..pp.."},
		{0, "pp", "p."},
	} {
		require.Equal(t, c.told, told(health.NewFilter(c.threshold), c.story), "%d %s", c.threshold, c.story)
	}
}

func TestChecksAreToldApart(t *testing.T) {
	f := health.NewFilter(1)
	for _, check := range []string{"a", "b"} {
		require.True(t, f.Tell(health.Result{Check: check, Pass: true}))
		require.False(t, f.Tell(health.Result{Check: check, Pass: true}))
	}
	require.True(t, f.Tell(health.Result{Check: "a"}))
	require.False(t, f.Tell(health.Result{Check: "b", Pass: true}))
}

func TestAThresholdThatRises(t *testing.T) {
	f := health.NewFilter(1)
	require.Equal(t, "p.", told(f, "pp"))
	f.Threshold(3)
	require.Equal(t, "pp.", told(f, "ppp"))
	f.Threshold(1)
	require.Equal(t, "..f", told(f, "ppf"))
}

// Who counts only what the journal is told comes to the same end as who counts every run.
func TestNothingIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.IntRange(1, 4).Draw(t, "threshold")
		failures := rapid.IntRange(1, 4).Draw(t, "failures")
		story := rapid.StringOf(rapid.RuneFrom([]rune("ppppfffs"))).Draw(t, "story")
		every, some := &counter{pass: threshold, fail: failures}, &counter{pass: threshold, fail: failures}
		f := health.NewFilter(threshold)
		for _, c := range story {
			if c == 's' {
				f.Anew()
				*every, *some = counter{pass: threshold, fail: failures}, counter{pass: threshold, fail: failures}
				continue
			}
			every.count(c == 'p')
			if f.Tell(health.Result{Check: "a", Pass: c == 'p'}) {
				some.count(c == 'p')
			}
			require.Equal(t, every.rank, some.rank)
		}
	})
}

// counter ranks one check as the journal does.
type counter struct {
	pass, fail     int
	passes, failed int
	rank           string
}

func (c *counter) count(pass bool) {
	if pass {
		c.passes, c.failed = c.passes+1, 0
	} else {
		c.passes, c.failed = 0, c.failed+1
	}
	switch {
	case c.failed >= c.fail:
		c.rank = "fail"
	case c.passes >= c.pass:
		c.rank = "pass"
	}
}
