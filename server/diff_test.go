package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/compare"
)

// shownBy has every group but the built-in defaults shown by these targets.
func shownBy(targets ...journal.Target) projector.Settings {
	return projector.Settings{
		Defaults: policy.Default(), Groups: map[string]projector.Group{"flink": {Policy: policy.Default(), Targets: targets}},
	}
}

func cm() journal.Target { return journal.Target{Name: "cm", Kind: "test"} }

// startOpen is a server whose target takes writes, and where jm-1 leads.
func startOpen(t *testing.T, o options) (*harness, uint64) {
	t.Helper()
	if o.settings.Groups == nil {
		o.settings = shownBy(cm())
	}
	h := start(t, o)
	close(h.target.open)
	h.until(func() bool {
		configured := false
		h.projector.Read(func(v *view.View) { configured = v.Group("flink") != nil && v.Group("flink").Configured > 0 })
		return configured
	})
	acks := h.say(grantS1, confirmS1)
	a := h.do("POST", "/v1/events?wait=published", "application/json", confirmS1)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	return h, acks[1].Sequence
}

func (h *harness) diff(query string) []api.DiffRow {
	h.tb.Helper()
	var page api.Diff
	var value any
	a := h.do("GET", "/v1/diff"+query, "", "")
	require.Equal(h.tb, http.StatusOK, a.status, a.body)
	require.NoError(h.tb, json.Unmarshal([]byte(a.body), &page), a.body)
	require.NoError(h.tb, json.Unmarshal([]byte(a.body), &value))
	require.NoError(h.tb, described(h.tb, h).conforms(map[string]any{"$ref": "#/components/schemas/Diff"}, value, "diff"))
	require.NotZero(h.tb, page.Sequence)
	return page.Rows
}

// row is that of a target in an answer.
func row(t *testing.T, rows []api.DiffRow, target string) api.DiffRow {
	t.Helper()
	for _, r := range rows {
		if r.Target == target {
			return r
		}
	}
	require.Failf(t, "no row", "of %s in %+v", target, rows)
	return api.DiffRow{}
}

func TestDiff(t *testing.T) {
	h, sequence := startOpen(t, options{})
	rows := h.diff("")
	require.Len(t, rows, 2)
	one := &journal.LeaderInfo{Session: "S1", Candidate: "jm-1", Address: "http://jm-1:8081"}
	for i, target := range []string{"cm", "kv"} {
		require.Equal(t, target, rows[i].Target)
		require.Equal(t, compare.Same, rows[i].State, rows[i])
		require.Equal(t, &api.Standing{Sequence: sequence, Leader: one}, rows[i].Should)
		require.Equal(t, one, rows[i].Shows.Leader)
		require.Equal(t, sequence, rows[i].Shows.Sequence)
		require.NotZero(t, rows[i].Shows.Revision)
	}
	require.Equal(t, "h", rows[0].Shows.Holder)
	require.Equal(t, view.InSync, rows[0].Push.State)

	other := &journal.LeaderInfo{Session: "S9", Address: "http://jm-9:8081"}
	for _, c := range []struct {
		sequence uint64
		leader   *journal.LeaderInfo
		reason   string
	}{
		{sequence, other, compare.OtherLeader},
		{sequence, nil, compare.Missing},
		{sequence - 1, one, compare.LowerSequence},
		{1 << 40, one, compare.Ahead},
	} {
		h.target.write(c.sequence, "rest", c.leader)
		got := row(t, h.diff(""), "cm")
		require.Equal(t, compare.Differs, got.State)
		require.Equal(t, c.reason, got.Reason)
		require.Equal(t, c.leader, got.Shows.Leader)
		require.Equal(t, c.sequence, got.Shows.Sequence)
		require.Equal(t, &api.Standing{Sequence: sequence, Leader: one}, got.Should)
	}
	require.Equal(t, compare.Same, row(t, h.diff(""), "kv").State)
}

func TestDiffOfTheBuiltInBucket(t *testing.T) {
	h, sequence := startOpen(t, options{})
	require.Equal(t, compare.Same, row(t, h.diff(""), "kv").State, "it is written")
	bucket, err := h.log.JetStream().KeyValue(t.Context(), "leaders")
	require.NoError(t, err)
	_, err = bucket.PutString(t.Context(), "flink.rest", `{"sequence":1,"epoch":1,"phase":"confirmed","leader":null}`)
	require.NoError(t, err)
	got := row(t, h.diff(""), "kv")
	require.Equal(t, compare.Missing, got.Reason)
	require.Equal(t, sequence, got.Should.Sequence)
	require.Equal(t, "nats/kv", got.Kind)
	require.Equal(t, compare.Same, row(t, h.diff(""), "cm").State)
}

func TestDiffIsOfWhatIsAskedFor(t *testing.T) {
	h, _ := startOpen(t, options{})
	h.say(`{"kind":"grant","group":"a","component":"x","candidate":"c","session":"S"}`,
		`{"kind":"grant","group":"flink","component":"other","candidate":"c","session":"S"}`)
	names := func(query string) (names []string) {
		for _, r := range h.diff(query) {
			names = append(names, r.Group+"/"+r.Component+" "+r.Target)
		}
		return names
	}
	require.Equal(t, []string{"a/x kv", "flink/other cm", "flink/other kv", "flink/rest cm", "flink/rest kv"}, names(""))
	require.Equal(t, []string{"flink/other cm", "flink/other kv", "flink/rest cm", "flink/rest kv"}, names("?group=flink"))
	require.Equal(t, []string{"flink/rest cm", "flink/rest kv"}, names("?group=flink&component=rest"))
	var page api.Diff
	h.get("/v1/diff?limit=1", &page)
	require.Equal(t, "a", page.Rows[0].Group)
	require.Len(t, names("?limit=1&cursor="+page.Next), 4)
	require.Equal(t, http.StatusNotFound, h.do("GET", "/v1/diff?group=none", "", "").status)
	require.Equal(t, http.StatusNotFound, h.do("GET", "/v1/diff?group=flink&component=none", "", "").status)
	for _, query := range []string{"component=rest", "groop=flink", "limit=0", "cursor=!", "timeout=1h", "timeout=x"} {
		a := h.do("GET", "/v1/diff?"+query, "", "")
		require.Equal(t, http.StatusBadRequest, a.status, query)
		problemOf(t, a)
	}
}

// TestAChangeUnderWayIsNoDifference has the object read before a push that is on its way: it is read again, and only
// then, when the push has landed.
func TestAChangeUnderWayIsNoDifference(t *testing.T) {
	reads := make(chan struct{}, 8)
	target := newMemory()
	target.reading = func(context.Context) error {
		reads <- struct{}{}
		return nil
	}
	h := start(t, options{
		settings: shownBy(cm()), connect: func(string, journal.Target) (projector.Target, error) { return target, nil },
	})
	h.say(grantS1, confirmS1)
	early := make(chan bool, 1)
	go func() {
		<-reads
		select {
		case <-reads:
			early <- true
		case <-time.After(100 * time.Millisecond):
			early <- false
		}
		close(target.open)
	}()
	require.Equal(t, compare.Same, row(t, h.diff("?group=flink"), "cm").State)
	require.False(t, <-early, "it was read again before the push had landed")
	require.Len(t, reads, 1)
}

// TestADifferenceStaysKnown though the object can't be read a second time.
func TestADifferenceStaysKnown(t *testing.T) {
	h, sequence := startOpen(t, options{})
	var reads atomic.Int64
	h.target.reading = func(context.Context) error {
		if reads.Add(1) > 1 {
			return errors.New("gone")
		}
		return nil
	}
	h.target.write(sequence, "rest", nil)
	got := row(t, h.diff(""), "cm")
	require.Equal(t, compare.Missing, got.Reason, got)
	require.Equal(t, int64(2), reads.Load())
}

// TestAPushThatFailedIsADifference says when it failed, and when it is tried again.
func TestAPushThatFailedIsADifference(t *testing.T) {
	target := newMemory()
	target.refuse = errors.New("the object is locked")
	close(target.open)
	h := start(t, options{
		settings: shownBy(cm()), connect: func(string, journal.Target) (projector.Target, error) { return target, nil },
	})
	h.say(grantS1, confirmS1)
	h.until(func() bool {
		failed := false
		h.projector.Read(func(v *view.View) {
			known := v.Group("flink").Components["rest"].Targets["cm"]
			failed = known != nil && known.State == view.Failing
		})
		return failed
	})
	got := row(t, h.diff("?group=flink"), "cm")
	require.Equal(t, compare.Missing, got.Reason)
	require.True(t, got.Push.Due)
	require.Equal(t, "the object is locked", got.Push.Error)
	require.False(t, got.Push.FailedAt.IsZero())
	require.NotZero(t, got.Push.RetryAfter)
	require.Positive(t, got.Push.Attempts)
	require.False(t, got.Push.OutSince.IsZero())
}

func TestTargetsThatCannotBeRead(t *testing.T) {
	h, _ := startOpen(t, options{
		settings: shownBy(cm(), journal.Target{Name: "hangs", Kind: "test", Observe: true},
			journal.Target{Name: "refuses", Kind: "test", Observe: true}, journal.Target{Name: "stranger", Kind: "test", Observe: true}),
		connect: func(_ string, spec journal.Target) (projector.Target, error) {
			target := newMemory()
			close(target.open)
			switch spec.Name {
			case "hangs":
				target.reading = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			case "refuses":
				target.reading = func(context.Context) error { return errors.New("403\x1b[31m forbidden") }
			case "stranger":
				return nil, errors.New("no cluster is known")
			}
			return target, nil
		},
	})
	rows := h.diff("?timeout=500ms")
	require.Equal(t, compare.Same, row(t, rows, "cm").State, "one that hangs does not keep the others from being known")
	for target, why := range map[string]string{
		"hangs": "it was not read within 500ms", "refuses": "403 [31m forbidden", "stranger": "no cluster is known",
	} {
		got := row(t, rows, target)
		require.Equal(t, api.Unreachable, got.State)
		require.Contains(t, got.Error, why)
		require.Nil(t, got.Shows)
		require.Empty(t, got.Reason)
	}
}

// TestWhatIsOnlyWatchedIsNoDifference has two objects of others, which journald reads and never writes.
func TestWhatIsOnlyWatchedIsNoDifference(t *testing.T) {
	h, _ := startOpen(t, options{settings: shownBy(
		journal.Target{Name: "druid", Kind: "test", Observe: true}, journal.Target{Name: "own", Kind: "test", Guarded: true},
	)})
	theirs := &journal.LeaderInfo{Session: "S9", Address: "http://jm-9:8081"}
	h.target.write(0, "rest", theirs)
	for _, target := range []string{"druid", "own"} {
		got := row(t, h.diff(""), target)
		require.Equal(t, compare.Observed, got.State)
		require.Equal(t, theirs, got.Shows.Leader)
		require.Nil(t, got.Should)
		require.Nil(t, got.Push)
	}
	var state api.Groups
	h.get("/v1/groups", &state)
	for _, target := range state.Groups[0].Components[0].Targets {
		require.Equal(t, compare.Observed, target.State)
	}
}

// TestFewTargetsAreReadAtOneTime asks for many at once.
func TestFewTargetsAreReadAtOneTime(t *testing.T) {
	var targets []journal.Target
	for i := range 40 {
		targets = append(targets, journal.Target{Name: fmt.Sprintf("t%d", i), Kind: "test", Observe: true})
	}
	h, _ := startOpen(t, options{settings: shownBy(targets...)})
	var now, most atomic.Int64
	full, once := make(chan struct{}), sync.Once{}
	h.target.reading = func(ctx context.Context) error {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 8 {
			once.Do(func() { time.AfterFunc(50*time.Millisecond, func() { close(full) }) }) // more would come meanwhile
		}
		select {
		case <-full:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	require.Len(t, h.diff(""), 41)
	require.Equal(t, int64(8), most.Load())
}

// TestWhatOthersWroteIsAnything has an entry that is no UTF-8.
func TestWhatOthersWroteIsAnything(t *testing.T) {
	h, sequence := startOpen(t, options{})
	h.target.write(sequence, "rest", &journal.LeaderInfo{Session: "S\xff", Address: strings.Repeat("a", 1<<20)})
	got := row(t, h.diff(""), "cm")
	require.Equal(t, compare.OtherLeader, got.Reason)
	require.Equal(t, "S�", got.Shows.Leader.Session)
}
