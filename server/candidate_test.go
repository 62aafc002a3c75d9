package server_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/standing"
)

const (
	jm1     = "/v1/groups/flink/candidates/jm-1"
	joinJM1 = `{"kind":"join","group":"flink","candidate":"jm-1","incarnation":"1","components":["rest"]}`
)

// follow reads where a candidate stands, from the first time on.
func (h *harness) follow(path, lastID string) *reader {
	h.tb.Helper()
	return h.stream(path+"/watch", lastID)
}

// standing is the next one that is told.
func (r *reader) standing() (s standing.Candidate) {
	r.tb.Helper()
	id := ""
	for {
		line, err := r.lines.ReadString('\n')
		require.NoError(r.tb, err)
		if value, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(line, "data: "); ok {
			require.NoError(r.tb, json.Unmarshal([]byte(value), &s))
			require.Equal(r.tb, id, strconv.FormatUint(s.Sequence, 10))
			return s
		}
	}
}

func TestACandidateIsToldWhereItStands(t *testing.T) {
	h := start(t, options{})
	r := h.follow(jm1, "")
	first := r.standing()
	require.Equal(t, standing.Candidate{Sequence: first.Sequence, Candidate: "jm-1", Health: "unknown", Policy: policy.Default()}, first,
		"it is told at once, though nobody knows it")

	h.say(joinJM1)
	joined := r.standing()
	require.True(t, joined.Joined)
	require.Equal(t, "1", joined.Incarnation)
	require.Greater(t, joined.Sequence, first.Sequence)

	other := `{"kind":"grant","group":"flink","component":"other","candidate":"jm-2","session":"S9"}`
	epoch := h.say(other, grantS1, other)[1].Sequence
	granted := r.standing()
	require.Len(t, granted.Terms, 1, "what concerns others only is not told")
	require.Equal(t, epoch, granted.Terms[0].Epoch)
	require.Equal(t, "S1", granted.Terms[0].Session)

	var once standing.Candidate
	h.get(jm1, &once)
	require.Equal(t, granted.Terms, once.Terms)

	h.say(`{"kind":"grant","group":"flink","component":"rest","candidate":"jm-2","session":"S2"}`)
	require.Empty(t, r.standing().Terms, "somebody else holds it")
}

func TestWhoComesBackIsToldNothingOlder(t *testing.T) {
	h := start(t, options{})
	h.say(joinJM1)
	told := h.follow(jm1, "").standing()
	last := told.Sequence + 100 // as another journald would have told it
	posted := make(chan answer, 1)
	go func() { posted <- h.post("[" + strings.Repeat(grantS1+",", 200) + grantS1 + "]") }()
	again := h.follow(jm1, strconv.FormatUint(last, 10)).standing()
	require.GreaterOrEqual(t, again.Sequence, last)
	require.Len(t, again.Terms, 1)
	require.Equal(t, http.StatusCreated, (<-posted).status)

	a := h.do("GET", jm1+"/watch", "", "", "Last-Event-ID", "-1")
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Equal(t, "Last-Event-ID", problemOf(t, a).Errors[0].Field)
}

func TestWhoWasToldMoreThanThereIsHearsSo(t *testing.T) {
	h := start(t, options{catchUp: 50 * time.Millisecond})
	a := h.do("GET", jm1+"/watch", "", "", "Last-Event-ID", "1000000")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Contains(t, problemOf(t, a).Detail, "the journal was reset or restored")
}

// Several things that happen at once may be told as one; what was told last is how it is.
func TestTheNewestIsToldInTheEnd(t *testing.T) {
	h := start(t, options{})
	r := h.follow(jm1, "")
	last := uint64(0)
	for n := range 100 {
		session := fmt.Sprintf("S%d", n)
		acks := h.say(
			`{"kind":"grant","group":"flink","component":"rest","candidate":"jm-1","session":"`+session+`"}`,
			`{"kind":"ready","group":"flink","component":"rest","session":"`+session+`","ready":true}`)
		last = acks[1].Sequence
	}
	for before := uint64(0); before < last; {
		s := r.standing()
		require.Greater(t, s.Sequence, before)
		if before = s.Sequence; before == last {
			require.Equal(t, "S99", s.Terms[0].Session)
			require.Equal(t, "true", s.Terms[0].Ready)
		}
	}
}

// Names that no event can have are refused, before anybody waits for them.
func TestNamesOfNoCandidate(t *testing.T) {
	h := start(t, options{})
	for _, path := range []string{"/v1/groups/g/candidates/%ff", "/v1/groups/g/candidates/%ff/watch", "/v1/groups/%00/candidates/a"} {
		p := problemOf(t, h.do("GET", path, "", ""))
		require.Equal(t, 400, p.Status, path)
		require.Equal(t, "urn:journald:problem:invalid-name", p.Type)
	}
}

// Where nobody is there to follow a leader that is gone its term stays open, but no client is sent to it.
func TestALapsedLeaseIsNoLeader(t *testing.T) {
	rules := policy.Default()
	rules.Election = policy.Managed
	rules.Lease = policy.Lease{Duration: policy.Duration(300e6), RenewEvery: policy.Duration(100e6), ReleaseWithin: policy.Duration(300e6)}
	h := start(t, options{settings: projector.Settings{Defaults: rules, Groups: map[string]projector.Group{}}})
	h.say(`{"kind":"join","group":"g","candidate":"a","incarnation":"1","components":["web"]}`)
	session := ""
	h.until(func() bool {
		h.projector.Read(func(v *view.View) {
			if c := v.Group("g").Components["web"]; c != nil && c.Term != nil {
				session = c.Term.Session
			}
		})
		return session != ""
	})
	h.say(`{"kind":"confirm","group":"g","component":"web","candidate":"a","session":"` + session + `","address":"http://a","attempt":1}`)
	h.until(func() bool {
		answer := h.do("GET", "/v1/groups/g/components/web/leader", "", "")
		return answer.status == 503 && strings.Contains(answer.body, `"state":"lapsed"`)
	})
}
