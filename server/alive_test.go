package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/internal/api"
)

const alivePath = "/v1/groups/flink/candidates/jm%2F1/alive"

// renewed is the revision that an answer gives.
func renewed(tb testing.TB, a answer) uint64 {
	tb.Helper()
	require.Equal(tb, 200, a.status, a.body)
	var r api.Renewed
	require.NoError(tb, json.Unmarshal([]byte(a.body), &r))
	return r.Revision
}

func heartbeat(incarnation string, revision uint64) string {
	return fmt.Sprintf(`{"incarnation": %q, "revision": %d, "lease": "15s", "run": 4}`, incarnation, revision)
}

func TestHeartbeats(t *testing.T) {
	h := start(t, options{})
	before, err := h.log.Last(t.Context())
	require.NoError(t, err)
	first := renewed(t, h.do("PUT", alivePath, "application/json", `{"incarnation": "1"}`))
	second := renewed(t, h.do("PUT", alivePath, "", heartbeat("1", first)))
	require.Greater(t, second, first)

	p := problemOf(t, h.do("PUT", alivePath, "application/json", heartbeat("2", first)))
	require.Equal(t, 409, p.Status)
	require.Equal(t, "urn:journald:problem:alive-conflict", p.Type)
	require.Equal(t, "1", p.Found.Incarnation)
	require.Equal(t, second, p.Found.Revision)
	require.Equal(t, "15s", p.Found.Lease.String())
	require.Equal(t, uint64(4), p.Found.Run)

	bucket, err := alive.Open(t.Context(), h.log.JetStream(), alive.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	written, err := bucket.Expire(t.Context(), alive.Key{Group: "flink", Candidate: "jm/1"}, alive.Heartbeat{Incarnation: "1", Until: 9}, second)
	require.NoError(t, err)
	require.True(t, written)
	p = problemOf(t, h.do("PUT", alivePath, "application/json", heartbeat("1", second)))
	require.Equal(t, uint64(9), p.Found.Until)

	p = problemOf(t, h.do("PUT", "/v1/groups/flink/candidates/jm-2/alive", "", heartbeat("1", second)))
	require.Equal(t, 409, p.Status)
	require.Nil(t, p.Found, "there is no key")
	last, err := h.log.Last(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, last, "heartbeats leave no records")
}

func TestHeartbeatsThatAreRefused(t *testing.T) {
	h := start(t, options{})
	for _, c := range []struct {
		body, field, problem string
	}{
		{"", "body", "is not JSON"},
		{"[]", "body", "is a JSON [ where an object is wanted"},
		{`{"incarnation": "1"} x`, "body", "is not JSON"},
		{`{"incarnation": "1", "incarnation": "2"}`, "body", "duplicate"},
		{`{}`, "incarnation", "is missing"},
		{`{"incarnation": "é"}`, "incarnation", "not printable ASCII"},
		{`{"incarnation": 1}`, "incarnation", "is a JSON number, which does not go there"},
		{`{"incarnation": "1", "revison": 3}`, "revison", `did you mean "revision"?`},
		{`{"incarnation": "1", "revision": -3}`, "revision", "does not go there"},
		{`{"incarnation": "1", "revision": "3"}`, "revision", "does not go there"},
		{`{"incarnation": "1", "lease": 15}`, "lease", "does not go there"},
		{`{"incarnation": "1", "lease": "15"}`, "lease", "write it like 30s"},
		{`{"incarnation": "1", "lease": "-1s"}`, "lease", "is not between"},
		{`{"incarnation": "1", "lease": "25h"}`, "lease", "is not between"},
	} {
		t.Run(c.body, func(t *testing.T) {
			p := problemOf(t, h.do("PUT", alivePath, "application/json", c.body))
			require.Equal(t, 400, p.Status)
			require.Equal(t, "urn:journald:problem:invalid-heartbeat", p.Type)
			require.Equal(t, c.field, p.Errors[0].Field)
			require.Contains(t, p.Errors[0].Problem, c.problem)
		})
	}
	p := problemOf(t, h.do("PUT", "/v1/groups/a%20b/candidates/%C3%A9/alive", "", heartbeat("1", 0)))
	require.Equal(t, []string{"group", "candidate"}, []string{p.Errors[0].Field, p.Errors[1].Field})
	require.Equal(t, 413, h.do("PUT", alivePath, "", strings.Repeat(" ", 5<<10)).status)
	require.Equal(t, 415, h.do("PUT", alivePath, "text/plain", heartbeat("1", 0)).status)
	require.Equal(t, 415, h.do("PUT", alivePath, "application/x-ndjson", heartbeat("1", 0)).status)
	require.Equal(t, 405, h.do("POST", alivePath, "", heartbeat("1", 0)).status)
}

// failing is a bucket that can't be written.
type failing struct{ err error }

func (f failing) Renew(context.Context, alive.Key, alive.Heartbeat, uint64) (uint64, error) {
	return 0, f.err
}

func TestAHeartbeatOfWhichNothingIsKnown(t *testing.T) {
	h := start(t, options{alive: failing{fmt.Errorf("%w: secret", alive.ErrUnknownOutcome)}})
	a := h.do("PUT", alivePath, "", heartbeat("1", 0))
	p := problemOf(t, a)
	require.Equal(t, 503, p.Status)
	require.Contains(t, p.Detail, "may have been renewed or not")
	require.NotContains(t, a.body, "secret")
	require.Equal(t, "1", a.header.Get("Retry-After"))

	h = start(t, options{alive: failing{errors.New("secret")}})
	a = h.do("PUT", alivePath, "", heartbeat("1", 0))
	require.Contains(t, problemOf(t, a).Detail, "nothing was written")
	require.NotContains(t, a.body, "secret")
}
