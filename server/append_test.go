package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/server"
	"github.com/leadership-journal/journald/view"
)

const (
	cloudEvent = `{"specversion":"1.0","id":"%s","source":"candidate/jm-1","type":"leadership.grant.v1","subject":"flink/rest",` +
		`"time":"2026-08-01T10:00:00Z","data":{"candidate":"jm-1","session":"S1"}}`
	grantS1   = `{"kind":"grant","group":"flink","component":"rest","candidate":"jm-1","session":"S1"}`
	confirmS1 = `{"kind":"confirm","group":"flink","component":"rest","candidate":"jm-1","session":"S1",` +
		`"address":"http://jm-1:8081","attempt":1}`
	revokeS1 = `{"kind":"revoke","group":"flink","component":"rest","session":"S1","reason":"lost"}`
)

func TestForms(t *testing.T) {
	h := start(t, options{})
	one, two := fmt.Sprintf(cloudEvent, "a"), fmt.Sprintf(cloudEvent, "b")
	for name, c := range map[string]struct {
		contentType, body string
		batch             bool
		n                 int
	}{
		"cloudevent": {"application/cloudevents+json", fmt.Sprintf(cloudEvent, "1"), false, 1},
		"charset":    {"application/cloudevents+json; charset=UTF-8", fmt.Sprintf(cloudEvent, "2"), false, 1},
		"json":       {"application/json", fmt.Sprintf(cloudEvent, "3"), false, 1},
		"short":      {"application/json", grantS1, false, 1},
		"no type":    {"", grantS1, false, 1},
		"curl -d":    {"application/x-www-form-urlencoded", grantS1, false, 1},
		"short with a trap": {"application/json", strings.Replace(confirmS1, `"attempt":1`,
			`"attempt":1,"properties":{"specversion":"x"}`, 1), false, 1},
		"array":              {"application/json", "[" + fmt.Sprintf(cloudEvent, "4") + " ,\n" + grantS1 + "]", true, 2},
		"array of one":       {"application/json", "[" + grantS1 + "]", true, 1},
		"cloudevents batch":  {"application/cloudevents-batch+json", "[" + fmt.Sprintf(cloudEvent, "5") + "]", true, 1},
		"lines":              {"application/x-ndjson", fmt.Sprintf(cloudEvent, "6") + "\n\n" + grantS1 + "\n", true, 2},
		"lines said as json": {"application/json", grantS1 + "\n" + grantS1, true, 2},
		"twice in a batch":   {"application/json", "[" + one + "," + one + "," + two + "]", true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.do("POST", "/v1/events", c.contentType, c.body)
			require.Equal(t, http.StatusCreated, a.status, a.body)
			var acks []api.Ack
			if c.batch {
				require.NoError(t, json.Unmarshal([]byte(a.body), &acks), a.body)
			} else {
				acks = make([]api.Ack, 1)
				require.NoError(t, json.Unmarshal([]byte(a.body), &acks[0]), a.body)
			}
			require.Len(t, acks, c.n)
			for _, ack := range acks {
				require.NotZero(t, ack.Sequence)
				require.NotEmpty(t, ack.ID)
				require.Empty(t, ack.Verdict)
			}
		})
	}
}

func TestDuplicateNamesTheFirst(t *testing.T) {
	h := start(t, options{})
	var first, second api.Ack
	require.NoError(t, json.Unmarshal([]byte(h.post(fmt.Sprintf(cloudEvent, "a")).body), &first))
	require.NoError(t, json.Unmarshal([]byte(h.post(fmt.Sprintf(cloudEvent, "a")).body), &second))
	require.Equal(t, first.Sequence, second.Sequence)
	require.False(t, first.Duplicate)
	require.True(t, second.Duplicate)
}

func TestShortFormIsFilledIn(t *testing.T) {
	h := start(t, options{})
	for kind, want := range map[string]string{
		`{"kind":"grant","group":"g","component":"c","candidate":"http://[::1]:8290","session":"S"}`:     "candidate/http:%2F%2F%5B::1%5D:8290",
		`{"kind":"withdraw","group":"g","component":"c","actor":"alice","reason":"test"}`:                "operator/alice",
		`{"kind":"watch","group":"g","component":"c","target":"cm","revision":1,"entry":null}`:           "observer/http",
		`{"kind":"ready","group":"g","component":"c","session":"S","ready":true}`:                        "service/http",
		`{"kind":"ready","group":"g","component":"c","session":"S","ready":true,"source":"me","id":"7"}`: "me",
	} {
		ack := h.say(kind)[0]
		var record api.Record
		h.get(fmt.Sprintf("/v1/events/%d", ack.Sequence), &record)
		event, err := journal.Decode(record.Event)
		require.NoError(t, err)
		require.Equal(t, want, event.Source)
		require.Equal(t, ack.ID, event.ID)
		require.WithinDuration(t, time.Now(), event.Time, time.Minute)
	}
}

// TestBadInput has everything that a stranger may send. None of it is stored, each answer says why.
func TestBadInput(t *testing.T) {
	h := start(t, options{})
	before, err := h.log.Last(t.Context())
	require.NoError(t, err)
	long := strings.Repeat("x", 300<<10)
	for name, c := range map[string]struct {
		contentType, body string
		status            int
		field, says       string
	}{
		"empty":              {"", "", 400, "", "empty"},
		"white space":        {"", " \n ", 400, "", "empty"},
		"no JSON":            {"", "hello", 400, "event", "not JSON"},
		"cut off":            {"", grantS1[:40], 400, "event", "not JSON"},
		"a number":           {"", "17", 400, "event", "object is wanted"},
		"empty array":        {"", "[]", 400, "", "no event"},
		"array cut off":      {"", "[" + grantS1, 400, "", "not JSON"},
		"array and more":     {"", "[" + grantS1 + "] x", 400, "body", "goes on"},
		"no kind":            {"", `{"group":"g"}`, 400, "kind", "missing"},
		"unknown kind":       {"", `{"kind":"grnt","group":"g","component":"c"}`, 400, "kind", "did you mean"},
		"kind of wrong type": {"", `{"kind":7,"group":"g"}`, 400, "kind", "text is wanted"},
		"unknown member":     {"", strings.Replace(grantS1, "candidate", "candidat", 1), 400, "candidat", "candidate"},
		"wrong type":         {"", strings.Replace(grantS1, `"S1"`, `{"a":1}`, 1), 400, "session", "object"},
		"member twice":       {"", strings.Replace(grantS1, `"session"`, `"candidate":"b","session"`, 1), 400, "", "duplicate"},
		"no component":       {"", `{"kind":"grant","group":"g","candidate":"a","session":"S"}`, 400, "component", "missing"},
		"component too many": {"", `{"kind":"leave","group":"g","component":"c","candidate":"a","incarnation":"1"}`, 400, "", "alone"},
		"hostile group": {"", `{"kind":"grant","group":"../../etc","component":"c","candidate":"a","session":"S"}`, 400, "group",
			"character"},
		"wildcard group": {"", `{"kind":"grant","group":"*","component":">","candidate":"a","session":"S"}`, 400, "group", "character"},
		"dots":           {"", `{"kind":"grant","group":"..","component":"c","candidate":"a","session":"S"}`, 400, "group", "not a name"},
		"underscore":     {"", `{"kind":"grant","group":"_","component":"c","candidate":"a","session":"S"}`, 400, "group", "not a name"},
		"long name": {"", `{"kind":"grant","group":"` + strings.Repeat("g", 129) +
			`","component":"c","candidate":"a","session":"S"}`, 400, "group", "129"},
		"new line in a name": {"", `{"kind":"grant","group":"g","component":"c","candidate":"a\nb","session":"S"}`, 400, "candidate",
			"printable"},
		"hostile id":         {"", strings.Replace(grantS1, `{`, `{"id":"`+strings.Repeat("i", 200)+`",`, 1), 400, "id", "200"},
		"hostile source":     {"", strings.Replace(grantS1, `{`, `{"source":"a|b",`, 1), 400, "source", "|"},
		"no UTF-8":           {"", strings.Replace(grantS1, "jm-1", "\xff\xfe", 1), 400, "event", "UTF-8"},
		"oversized event":    {"", strings.Replace(confirmS1, "http://jm-1:8081", long, 1), 400, "event", "at most"},
		"oversized envelope": {"", strings.Replace(fmt.Sprintf(cloudEvent, "x"), "S1", long, 1), 400, "event", "at most"},
		"oversized body":     {"", strings.Repeat("x", 16<<20+1), 413, "", "16 MiB"},
		"too many":           {"application/x-ndjson", strings.Repeat(grantS1+"\n", 1001), 413, "", "1000"},
		"too many in array":  {"", "[" + strings.Repeat(grantS1+",", 1000) + grantS1 + "]", 413, "", "1000"},
		"media type":         {"text/plain", grantS1, 415, "", "application/json"},
		"charset":            {"application/json; charset=latin1", grantS1, 415, "", "UTF-8"},
		"envelope wanted":    {"application/cloudevents+json", grantS1, 400, "specversion", "1.0"},
		"other version":      {"", strings.Replace(fmt.Sprintf(cloudEvent, "x"), `"1.0"`, `"0.3"`, 1), 400, "specversion", "0.3"},
		"other type": {"", strings.Replace(fmt.Sprintf(cloudEvent, "x"), "leadership.grant", "com.example.grant", 1), 400, "type",
			"form"},
		"deep nesting": {"", `{"kind":"grant","group":` + strings.Repeat("[", 20000) + "}", 400, "event", "JSON"},
		"push": {"", `{"kind":"push","group":"g","component":"c","target":"t","intent":1,"attempt":1,` +
			`"outcome":"ok","projector":1,"basis":1,"source":"projector/x"}`, 403, "", "projector"},
		"takeover":           {"", `{"kind":"takeover","group":"_","instance":"mine"}`, 403, "", "projector"},
		"projector's source": {"", strings.Replace(grantS1, `{`, `{"source":"projector/journald-0",`, 1), 403, "", "projector"},
		"decision by other":  {"", strings.Replace(grantS1, `{`, `{"projector":1,"basis":1,`, 1), 400, "source", "projector"},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.do("POST", "/v1/events", c.contentType, c.body)
			require.Equal(t, c.status, a.status, a.body)
			p := problemOf(t, a)
			require.Contains(t, a.body, c.says)
			if c.field != "" {
				require.Equal(t, c.field, p.Errors[0].Field, a.body)
				require.Nil(t, p.Errors[0].Index)
			}
		})
	}
	last, err := h.log.Last(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, last, "nothing of it was stored")
	require.Equal(t, view.Applied, h.say(grantS1)[0].Verdict, "the projector goes on")
}

func TestBatchIsAllOrNothing(t *testing.T) {
	h := start(t, options{})
	before, err := h.log.Last(t.Context())
	require.NoError(t, err)
	a := h.post("[" + grantS1 + "," + `{"kind":"grant","group":"g"}` + "," + grantS1 + "," + `{"kind":"x"}` + "]")
	require.Equal(t, http.StatusBadRequest, a.status)
	p := problemOf(t, a)
	require.Equal(t, 1, *p.Errors[0].Index)
	require.Equal(t, 3, *p.Errors[len(p.Errors)-1].Index)
	require.Contains(t, p.Detail, "nothing was stored; event 1")
	a = h.post("[" + grantS1 + "," + `{"kind":"takeover","group":"_","instance":"x"}` + "]")
	require.Equal(t, http.StatusForbidden, a.status)
	require.Contains(t, problemOf(t, a).Detail, "event 1")
	last, err := h.log.Last(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, last)
}

func TestWaitApplied(t *testing.T) {
	h := start(t, options{})
	acks := h.say(grantS1, confirmS1, strings.Replace(confirmS1, "S1", "S9", 1), strings.Replace(revokeS1, "S1", "S8", 1))
	require.Equal(t, view.Applied, acks[0].Verdict)
	require.Equal(t, view.Applied, acks[1].Verdict)
	require.Equal(t, view.UnknownSession, acks[2].Verdict)
	require.NotEmpty(t, acks[2].Reason)
	require.Equal(t, view.Stale, acks[3].Verdict)
	for _, query := range []string{"wait=maybe", "wait=applied&timeout=1", "wait=applied&timeout=-1s", "wat=applied",
		"wait=applied&wait=applied"} {
		a := h.do("POST", "/v1/events?"+query, "", grantS1)
		require.Equal(t, http.StatusBadRequest, a.status, query)
		require.NotEmpty(t, problemOf(t, a).Errors[0].Field)
	}
}

func TestWaitPublished(t *testing.T) {
	target := []journal.Target{{Name: "cm", Kind: "memory"}}
	h := start(t, options{settings: projector.Settings{
		Defaults: policy.Default(), Groups: map[string]projector.Group{"flink": {Policy: policy.Default(), Targets: target}},
	}})
	h.say(grantS1)
	a := h.do("POST", "/v1/events?wait=published&timeout=50ms", "", confirmS1)
	require.Equal(t, http.StatusGatewayTimeout, a.status, a.body)
	p := problemOf(t, a)
	require.Len(t, p.Events, 1, "it says what is stored nevertheless")
	require.Equal(t, view.Applied, p.Events[0].Verdict)
	close(h.target.open)
	a = h.do("POST", "/v1/events?wait=published&timeout=20s", "", strings.Replace(confirmS1, `"attempt":1`, `"attempt":2`, 1))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	var ack api.Ack
	require.NoError(t, json.Unmarshal([]byte(a.body), &ack))
	require.True(t, ack.Published)
	require.Equal(t, view.Duplicate, ack.Verdict)
	h.target.mu.Lock()
	defer h.target.mu.Unlock()
	require.Equal(t, "http://jm-1:8081", h.target.entries["rest"].Leader.Address)
}

func TestTheLastOfTheRoomIsForDecisions(t *testing.T) {
	full := server.Size{Bytes: 960, MaxBytes: 1000}
	h := start(t, options{size: func(context.Context) (server.Size, error) { return full, nil }})
	h.awaitSample()
	a := h.post(grantS1)
	require.Equal(t, http.StatusInsufficientStorage, a.status, a.body)
	require.Contains(t, problemOf(t, a).Detail, "960 of 1000")
	a = h.post(`{"kind":"withdraw","group":"flink","component":"rest","actor":"alice","reason":"test"}`)
	require.Equal(t, http.StatusCreated, a.status, "operators still can: "+a.body)
}

// awaitSample waits until the server knows the log's size.
func (h *harness) awaitSample() {
	h.tb.Helper()
	h.until(func() bool { return strings.Contains(h.do("GET", "/readyz?verbose", "", "").body, "[+] log") })
}

func TestManyNewGroups(t *testing.T) {
	h := start(t, options{})
	batch := func(first, n int) string {
		var b strings.Builder
		for i := first; i < first+n; i++ {
			fmt.Fprintf(&b, `{"kind":"grant","group":"g%d","component":"c","candidate":"a","session":"S"}`+"\n", i)
		}
		return b.String()
	}
	accepted, refused := 0, 0
	for first := 0; first < 10_000; first += 500 {
		a := h.do("POST", "/v1/events", "application/x-ndjson", batch(first, 500))
		if a.status == http.StatusCreated {
			accepted++
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, a.status, a.body)
		require.NotEmpty(t, a.header.Get("Retry-After"))
		require.Contains(t, problemOf(t, a).Detail, "1000 groups")
		refused++
	}
	require.Equal(t, 2, accepted)
	require.Equal(t, 18, refused)
	require.Equal(t, view.Duplicate, h.say(`{"kind":"grant","group":"g7","component":"c","candidate":"a","session":"S"}`)[0].Verdict,
		"what is known goes on")
	require.Equal(t, view.Applied, h.projectorVerdict(t, 3))
}

func (h *harness) projectorVerdict(t *testing.T, sequence uint64) view.Verdict {
	t.Helper()
	v, _, ok := h.projector.Verdict(sequence)
	require.True(t, ok)
	return v
}
