package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// fake is a server that answers as it is told to.
func fake(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func overHTTP() kind { return kinds()[0] }

// One of two journalds is down, or takes requests and never answers: the other one is asked, at once the next time.
func TestOneOfTwoIsDown(t *testing.T) {
	w := newWorld(t)
	mute := testenv.NewTCPProxy(t, w.http)
	mute.Freeze()
	for name, first := range map[string]string{"down": address(t), "mute": mute.Addr()} {
		t.Run(name, func(t *testing.T) {
			c := overHTTP().open(t, first, w.http)
			client.SetSilence(c, 500*time.Millisecond)
			f := follow(t, c, "jm-1")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Append(ctx, join("jm-1"))
			require.NoError(t, err)
			f.until(func(s client.Standing) bool { return s.Joined })
			began := time.Now()
			_, err = c.Renew(t.Context(), alive.Key{Group: group, Candidate: name}, alive.Heartbeat{Incarnation: "1"}, 0)
			require.NoError(t, err)
			require.Less(t, time.Since(began), 400*time.Millisecond, "the one that answered is asked first")
		})
	}
}

// A journald that is behind is not believed: it waits until it knows as much as was told, and what is older is dropped.
func TestNothingOlderIsTold(t *testing.T) {
	standing := func(sequence uint64) string {
		return fmt.Sprintf(`data: {"sequence":%d,"candidate":"jm-1","joined":true,"health":"pass","policy":{}}`+"\n\n", sequence)
	}
	var asked sync.Map
	var calls atomic.Int64
	server := fake(t, func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		asked.Store(n, r.Header.Get("Last-Event-ID"))
		switch n {
		case 1:
			_, _ = fmt.Fprint(w, ": here\n\nevent: other\ndata: {}\n\n", standing(10), standing(9), standing(10), standing(11), "data: {\"sequence\":12,")
		case 2:
			http.Error(w, `{"type":"urn:journald:problem:behind","status":503,"detail":"behind"}`, http.StatusServiceUnavailable)
		case 3:
			_, _ = fmt.Fprint(w, standing(11), standing(15))
		}
	})
	f := follow(t, overHTTP().open(t, server), "jm-1")
	for _, want := range []uint64{10, 11, 15} {
		require.Equal(t, want, f.next().Sequence)
	}
	for n, want := range map[int64]string{1: "", 2: "11", 3: "11"} {
		got, _ := asked.Load(n)
		require.Equal(t, want, got)
	}
}

// The events were stored, and the journald ran out of time before it had folded them. It is asked again, and they are no
// duplicates for that.
func TestStoredAndNotFoldedInTime(t *testing.T) {
	late := `{"type":"urn:journald:problem:timeout","title":"Gateway Timeout","status":504,"detail":"they were not applied within 5s",` +
		`"events":[{"sequence":7,"id":"a","duplicate":false}]}`
	var calls atomic.Int64
	var asked atomic.Value
	slow := func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = fmt.Fprint(w, late)
	}
	quick := func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Query().Get("wait"))
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `[{"sequence":7,"id":"a","duplicate":true,"verdict":"applied"}]`)
	}
	acks, err := overHTTP().open(t, fake(t, slow), fake(t, quick)).Append(t.Context(), join("jm-1"))
	require.NoError(t, err)
	require.Equal(t, []client.Ack{{Sequence: 7, Verdict: view.Applied}}, acks)
	require.Equal(t, "applied", asked.Load())

	_, err = overHTTP().open(t, fake(t, slow)).Append(t.Context(), join("jm-1"))
	require.ErrorContains(t, err, "the events are stored, from record 7 on, but what that did is not known")
	require.ErrorContains(t, err, "not applied within 5s")
	require.False(t, client.Final(err))
	require.NotErrorIs(t, err, journal.ErrInvalid)
	require.EqualValues(t, 2, calls.Load())
}

func TestWhatAnswersMean(t *testing.T) {
	problem := func(status int, code string) string {
		return fmt.Sprintf(`{"type":"urn:journald:problem:%s","title":"x","status":%d,"detail":"the reason"}`, code, status)
	}
	for name, c := range map[string]struct {
		status  int
		body    string
		final   bool
		is      error
		general bool // the other journald is not asked
	}{
		"bad input":      {400, problem(400, "invalid-event"), true, journal.ErrInvalid, true},
		"too large":      {413, problem(413, "too-large"), true, journal.ErrInvalid, true},
		"full":           {507, problem(507, "journal-full"), false, journal.ErrFull, true},
		"not allowed":    {403, "no", true, nil, true},
		"unknown":        {401, problem(401, "unauthenticated"), true, nil, true},
		"no such route":  {404, problem(404, "no-route"), true, nil, true},
		"no journald":    {404, "<html>404</html>", false, nil, false},
		"slow down":      {429, problem(429, "too-many-groups"), false, nil, false},
		"too slow":       {408, problem(408, "x"), false, nil, false},
		"out of reach":   {503, problem(503, "unavailable"), false, nil, false},
		"bad gateway":    {502, "<html>", false, nil, false},
		"another answer": {200, "hello", false, nil, false},
		"one too many":   {201, `[{"sequence":1},{"sequence":2}]`, false, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			handle := func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			}
			_, err := overHTTP().open(t, fake(t, handle), fake(t, handle)).Append(t.Context(), join("jm-1"))
			require.Error(t, err)
			require.Equal(t, c.final, client.Final(err), err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			} else {
				require.NotErrorIs(t, err, journal.ErrInvalid)
				require.NotErrorIs(t, err, journal.ErrFull)
			}
			if strings.Contains(c.body, "reason") {
				require.ErrorContains(t, err, "the reason")
			}
			require.Equal(t, c.general, calls.Load() == 1)
		})
	}
}

// What is final ends Follow; what is not is tried again.
func TestFollowEndsWithWhatIsFinal(t *testing.T) {
	var calls atomic.Int64
	c := overHTTP().open(t, fake(t, func(w http.ResponseWriter, _ *http.Request) {
		status := http.StatusBadGateway
		if calls.Add(1) > 2 {
			status = http.StatusForbidden
		}
		http.Error(w, "no", status)
	}))
	err := c.Follow(t.Context(), "jm-1", nil)
	require.True(t, client.Final(err))
	require.ErrorContains(t, err, "follow jm-1 in flink")
	require.ErrorContains(t, err, "403 Forbidden")
	require.EqualValues(t, 3, calls.Load())
}

// A stream on which not even comments come is given up, and made anew.
func TestAStreamThatFallsSilent(t *testing.T) {
	var calls atomic.Int64
	c := overHTTP().open(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "data: {\"sequence\":%d,\"candidate\":\"jm-1\"}\n\n", calls.Add(1))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	client.SetSilence(c, 50*time.Millisecond)
	f := follow(t, c, "jm-1")
	require.EqualValues(t, 1, f.next().Sequence)
	require.EqualValues(t, 2, f.next().Sequence)
}

func TestAnotherCandidatesStandingIsNotBelieved(t *testing.T) {
	c := overHTTP().open(t, fake(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "data: {\"sequence\":1,\"candidate\":\"jm-2\"}\n\n")
	}))
	err := c.Follow(bounded(t, 100*time.Millisecond), "jm-1", func(client.Standing) error { return errors.New("told") })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
