package health_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/health"
)

func pass(context.Context) error { return nil }

// check is tried every 10 s and has 5 s to answer.
func check(name string, probe health.Probe) health.Check {
	return health.Check{Name: name, Period: 10 * time.Second, Deadline: 5 * time.Second, Probe: probe}
}

// fault is what a check finds; empty: nothing.
type fault struct{ text atomic.Value }

func (f *fault) set(text string) { f.text.Store(text) }

func (f *fault) probe(context.Context) error {
	if text, ok := f.text.Load().(string); ok && text != "" {
		return errors.New(text)
	}
	return nil
}

// running is a runner in a bubble, and what it has reported.
type running struct {
	*health.Runner
	stop func()

	mu      sync.Mutex
	results []health.Result
}

// start has the runner run until stop.
func start(t *testing.T, checks ...health.Check) *running {
	t.Helper()
	runner, err := health.New(checks...)
	require.NoError(t, err)
	r := &running{Runner: runner}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx, func(_ context.Context, result health.Result) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.results = append(r.results, result)
		})
	}()
	r.stop = func() { cancel(); <-ended }
	return r
}

// after is what was reported so much later, in words.
func (r *running) after(d time.Duration) []string {
	<-time.After(d)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, x := range r.results {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d %t %s", x.Check, x.Run, x.Pass, x.Reason)))
	}
	r.results = nil
	return all
}

func TestEveryPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fault
		r := start(t, check("a", f.probe))
		require.Equal(t, []string{"a 1 true"}, r.after(0))
		require.Empty(t, r.after(9*time.Second))
		require.Equal(t, []string{"a 2 true"}, r.after(time.Second))
		f.set("no\nspace\tleft")
		require.Equal(t, []string{"a 3 false no; space left", "a 4 false no; space left"}, r.after(20*time.Second))
		r.stop()
		require.Empty(t, r.after(time.Minute))
	})
}

// The first runs are not all at one moment, and neither are those that follow.
func TestRunsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		moments := map[time.Time]int{}
		probe := func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			moments[time.Now()]++
			return nil
		}
		quick := health.Check{Name: "quick", Period: 100 * time.Millisecond, Deadline: 50 * time.Millisecond, Probe: probe}
		r := start(t, check("a", probe), check("b", probe), check("c", probe), quick)
		r.after(450 * time.Millisecond)
		r.stop()
		require.Len(t, moments, 3+4)
	})
}

// A disk that hangs is a failing run, and another one with each period. What it says when it answers at last is too late.
func TestAHungRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, calls := make(chan error), 0
		r := start(t, check("disk", func(context.Context) error { calls++; return <-answer }), check("other", pass))
		require.Equal(t, []string{"other 1 true"}, r.after(4*time.Second))
		require.Equal(t, []string{"disk 2 false timed out after 5s"}, r.after(2*time.Second))
		goroutines := runtime.NumGoroutine()
		began := time.Now().Add(-6 * time.Second).UTC().Format(time.RFC3339)
		require.Equal(t, []string{
			"disk 3 false still hangs since " + began, "other 4 true", "disk 5 false still hangs since " + began, "other 6 true",
		}, r.after(20*time.Second))
		require.Equal(t, goroutines, runtime.NumGoroutine())
		require.Equal(t, 1, calls)
		require.False(t, r.Passing())

		answer <- nil
		require.Empty(t, r.after(3*time.Second), "it was too late")
		close(answer)
		require.Equal(t, []string{"disk 7 true", "other 8 true"}, r.after(2*time.Second))
		require.Equal(t, 2, calls)
		require.True(t, r.Passing())
		r.stop()
	})
}

// A run that gives up when it is told to timed out, whatever it says of it.
func TestADeadlineThatIsHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, check("a", func(ctx context.Context) error { <-ctx.Done(); return nil }))
		require.Equal(t, []string{"a 1 false timed out after 5s", "a 2 false timed out after 5s"}, r.after(16*time.Second))
		r.stop()
	})
}

func TestAPanicIsAFailingRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t,
			check("panics", func(context.Context) error { panic("no disk") }),
			check("exits", func(context.Context) error { runtime.Goexit(); return nil }),
			check("mute", func(context.Context) error { return errors.New("") }))
		require.Equal(t, []string{
			"panics 1 false panicked: no disk", "exits 2 false ended without an answer", "mute 3 false failed, and did not say why",
		}, r.after(time.Second))
		r.stop()
	})
}

func TestReasonsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "began\x00" + strings.Repeat("ä", 5000) + "\xff" + "ended"
		r := start(t, check("a", func(context.Context) error { return errors.New(text) }))
		reason := r.after(time.Second)[0]
		require.Less(t, len(reason), 1020)
		require.True(t, utf8.ValidString(reason))
		require.True(t, strings.HasPrefix(reason, "a 1 false began ä") && strings.HasSuffix(reason, "ä?ended"), reason)
		r.stop()
	})
}

// Who is told slowly delays no check, and hears the newest results when there are too many.
func TestASlowReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner, err := health.New(check("a", pass))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		free, heard, ended := make(chan struct{}), []uint64{}, make(chan struct{})
		go func() {
			defer close(ended)
			runner.Run(ctx, func(_ context.Context, r health.Result) { <-free; heard = append(heard, r.Run) })
		}()
		<-time.After(20000*time.Second + time.Second)
		require.EqualValues(t, 2001, runner.Last()[0].Run)
		close(free)
		synctest.Wait()
		require.Len(t, heard, 1+1024)
		require.EqualValues(t, 1, heard[0])
		require.EqualValues(t, 2001-1023, heard[1])
		require.EqualValues(t, 2001, heard[1024])
		cancel()
		<-ended
	})
}

func TestHowChecksStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fault
		f.set("no")
		r := start(t, check("a", pass), check("b", f.probe))
		began := time.Now()
		r.after(25 * time.Second)
		require.Equal(t, []health.Last{
			{Result: health.Result{Check: "a", Run: 5, Pass: true}, Since: began},
			{Result: health.Result{Check: "b", Run: 6, Reason: "no"}, Since: began.Add(100 * time.Millisecond)},
		}, r.Last())
		require.False(t, r.Passing())
		f.set("")
		r.after(10 * time.Second)
		require.True(t, r.Passing())
		require.Equal(t, began.Add(30*time.Second+100*time.Millisecond), r.Last()[1].Since)
		r.stop()
	})
}

// The end waits for a run that ends, not for one that hangs: neither one that hung before nor one that hangs now.
func TestTheEndWaitsForWhatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tidied, never := false, make(chan struct{})
		r := start(t,
			check("ends", func(ctx context.Context) error {
				<-ctx.Done()
				<-time.After(900 * time.Millisecond)
				tidied = true
				return nil
			}),
			check("hangs", func(context.Context) error { <-never; return nil }))
		r.after(time.Second)
		began := time.Now()
		r.stop()
		require.True(t, tidied)
		require.Equal(t, time.Second, time.Since(began))
		require.Empty(t, r.after(0), "what was told to end says nothing of health")

		r = start(t, check("hung", func(context.Context) error { <-never; return nil }))
		r.after(12 * time.Second)
		began = time.Now()
		r.stop()
		require.Zero(t, time.Since(began))
		close(never)
	})
}

func TestBeforeTheFirstRun(t *testing.T) {
	r, err := health.New(check("a", pass), check("b", pass))
	require.NoError(t, err)
	require.Equal(t, []health.Last{{Result: health.Result{Check: "a"}}, {Result: health.Result{Check: "b"}}}, r.Last())
	require.False(t, r.Passing(), "nothing is known")
}

func TestNoChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		require.Empty(t, r.after(time.Hour))
		require.True(t, r.Passing())
		require.Empty(t, r.Last())
		r.stop()
	})
}

func TestBadChecksAreRefusedAllAtOnce(t *testing.T) {
	_, err := health.New(
		health.Check{},
		check("twice", pass), check("twice", pass), check("_", pass), check("ä", pass), check(strings.Repeat("x", 129), pass),
		health.Check{Name: "slow", Period: time.Second, Deadline: 2 * time.Second, Probe: pass},
		health.Check{Name: "fast", Period: time.Millisecond, Deadline: time.Microsecond, Probe: pass},
		health.Check{Name: "rare", Period: 25 * time.Hour, Deadline: time.Second, Probe: pass},
	)
	require.EqualError(t, err, strings.Join([]string{
		"check 1: it has no name",
		"check 1: its period 0s is not between 10ms and 24h0m0s",
		"check 1: its deadline 0s is less than 1ms",
		"check 1: it has no probe",
		`check "twice": there are two of this name`,
		`check "_": "_" alone is not a name`,
		`check "ä": its name "ä" has a character that is not printable ASCII`,
		`check "` + strings.Repeat("x", 40) + `": its name has 129 characters; at most 128 are allowed`,
		`check "slow": its deadline 2s is longer than its period 1s; a run has to end before the next begins`,
		`check "fast": its period 1ms is not between 10ms and 24h0m0s`,
		`check "fast": its deadline 1µs is less than 1ms`,
		`check "rare": its period 25h0m0s is not between 10ms and 24h0m0s`,
	}, "\n"))
	many := make([]health.Check, 65)
	for i := range many {
		many[i] = check(fmt.Sprint(i), pass)
	}
	_, err = health.New(many...)
	require.EqualError(t, err, "there are 65 checks; at most 64 are told apart")
}
