package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/server"
	"github.com/leadership-journal/journald/view"
)

const (
	transferPath = "/v1/groups/flink/components/rest/transfer"
	byAlice      = `"actor":"alice","reason":"upgrade"`
)

// staffed is a server where jm-1 leads, jm-2 and jm-3 are fit to take over, and jm-4 fails.
func staffed(t *testing.T) *harness {
	t.Helper()
	h, _ := startOpen(t, options{})
	for i, name := range []string{"jm-1", "jm-2", "jm-3", "jm-4"} {
		status := "pass"
		if name == "jm-4" {
			status = "fail"
		}
		h.say(fmt.Sprintf(`{"kind":"join","group":"flink","candidate":%q,"incarnation":"1","components":["rest"],"priority":%d}`, name, -i),
			fmt.Sprintf(`{"kind":"health","group":"flink","candidate":%q,"incarnation":"1","check":"disk","status":%q,"reason":"full","run":1}`,
				name, status))
	}
	return h
}

// stored is how many records the journal has of a kind.
func (h *harness) stored(kind string) int {
	h.tb.Helper()
	var page api.Records
	h.get("/v1/events?kind="+kind, &page)
	return len(page.Records)
}

func (h *harness) order(path, body string) answer {
	h.tb.Helper()
	return h.do("POST", path, "application/json", body)
}

func orderOf(tb testing.TB, a answer) api.Order {
	tb.Helper()
	require.Equal(tb, http.StatusCreated, a.status, a.body)
	var o api.Order
	require.NoError(tb, json.Unmarshal([]byte(a.body), &o))
	return o
}

// TestTransferWaits repeats one request at every step of a hand-over: it says what is waited for, and succeeds when the
// new leader is shown, and not before.
func TestTransferWaits(t *testing.T) {
	h := staffed(t)
	body := `{"to":"jm-2","id":"one",` + byAlice + `}`
	late := func(waits string) {
		t.Helper()
		a := h.order(transferPath+"?wait=done&timeout=30ms", body)
		require.Equal(t, http.StatusGatewayTimeout, a.status, a.body)
		p := problemOf(t, a)
		require.Contains(t, p.Detail, waits)
		require.Len(t, p.Events, 1, "it says what is stored nevertheless")
	}
	o := orderOf(t, h.order(transferPath, body))
	require.Equal(t, view.Applied, o.Verdict)
	require.Equal(t, "alice", o.Actor)
	require.Equal(t, "jm-1", o.Leader.Candidate, "nobody was waited for")
	h.until(func() bool { return h.component().Term.Yield != nil })
	late("jm-1 was told by record")
	late("to yield to jm-2, and has not let go")
	h.say(`{"kind":"release","group":"flink","component":"rest","session":"S1","reason":"yielded"}`)
	late("has stopped; its term is still open")
	h.say(revokeS1)
	late("nobody holds the term")
	h.say(`{"kind":"grant","group":"flink","component":"rest","candidate":"jm-2","session":"S2"}`)
	late("jm-2 holds the term and has not confirmed")
	h.target.mu.Lock() // it takes no write
	writable := sync.OnceFunc(h.target.mu.Unlock)
	t.Cleanup(writable)
	h.say(strings.NewReplacer("jm-1", "jm-2", "S1", "S2").Replace(confirmS1))
	late("not every target shows it: cm pending")
	writable()
	done := orderOf(t, h.order(transferPath+"?wait=done", body))
	require.True(t, done.Published)
	require.True(t, done.Duplicate, "all of these were one order")
	require.Equal(t, o.Sequence, done.Sequence)
	require.Equal(t, "jm-2", done.Leader.Candidate)
	require.Greater(t, done.Leader.Epoch, o.Sequence)
	require.Equal(t, []api.TargetState{{Name: "cm", State: "in-sync"}}, done.Targets)
	require.Equal(t, 1, h.stored("transfer"))
}

func (h *harness) component() (c api.Component) {
	h.tb.Helper()
	h.get("/v1/groups/flink/components/rest", &c)
	return c
}

// TestTransferWaitsInOneRequest has one request wait through the whole of a hand-over.
func TestTransferWaitsInOneRequest(t *testing.T) {
	h := staffed(t)
	answered := make(chan answer, 1)
	go func() { answered <- h.order(transferPath+"?wait=done&timeout=20s", "{"+byAlice+"}") }()
	h.until(func() bool { return h.component().Term.Yield != nil })
	h.say(revokeS1, `{"kind":"grant","group":"flink","component":"rest","candidate":"jm-2","session":"S2"}`)
	select {
	case a := <-answered:
		require.Fail(t, "answered before anybody confirmed", a.body)
	default:
	}
	h.say(strings.NewReplacer("jm-1", "jm-2", "S1", "S2").Replace(confirmS1))
	require.Equal(t, "jm-2", orderOf(t, <-answered).Leader.Candidate)
}

// TestTransferOvertaken has an elector choose otherwise than was ordered.
func TestTransferOvertaken(t *testing.T) {
	for name, c := range map[string]struct{ order, winner string }{
		"another one":     {`{"to":"jm-2",` + byAlice + `}`, "jm-3"},
		"the same holder": {`{` + byAlice + `}`, "jm-1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := staffed(t)
			answered := make(chan answer, 1)
			go func() { answered <- h.order(transferPath+"?wait=done&timeout=20s", c.order) }()
			h.until(func() bool { return h.component().Term.Yield != nil })
			h.say(revokeS1, fmt.Sprintf(`{"kind":"grant","group":"flink","component":"rest","candidate":%q,"session":"S2"}`, c.winner))
			a := <-answered
			require.Equal(t, http.StatusConflict, a.status, a.body)
			p := problemOf(t, a)
			require.Equal(t, api.ProblemPrefix+"overtaken", p.Type)
			require.Contains(t, p.Detail, c.winner+" holds the term")
			require.Len(t, p.Events, 1)
		})
	}
}

func TestRefusedOrders(t *testing.T) {
	h := staffed(t)
	h.say(`{"kind":"exclude","group":"flink","candidate":"jm-3",` + byAlice + `}`)
	before := h.stored("transfer")
	refused := func(path, body string, says ...string) {
		t.Helper()
		a := h.order(path, body)
		require.Equal(t, http.StatusConflict, a.status, a.body)
		p := problemOf(t, a)
		require.Equal(t, api.ProblemPrefix+"refused", p.Type)
		for _, words := range append(says, "nothing was stored") {
			require.Contains(t, p.Detail, words)
		}
		require.Empty(t, p.Events)
	}
	refused(transferPath, `{"to":"jm-1",`+byAlice+`}`, "jm-1 leads already", "name another candidate")
	refused(transferPath, `{"to":"jm-3",`+byAlice+`}`, "not fit", "force", "excluded")
	refused(transferPath, `{"to":"jm-4",`+byAlice+`}`, "unknown", "disk failed")
	refused(transferPath, `{"to":"jm-22",`+byAlice+`}`, "has not joined", `did you mean "jm-2"?`)
	refused("/v1/groups/flink/exclude", `{"candidate":"jn-2",`+byAlice+`}`, "never heard of", `did you mean "jm-2"?`)
	refused("/v1/groups/flink/include", `{"candidate":"jn-2",`+byAlice+`}`, "never heard of")

	require.Equal(t, http.StatusCreated, h.order("/v1/groups/flink/exclude", `{"candidate":"jm-2",`+byAlice+`}`).status)
	refused(transferPath, `{`+byAlice+`}`, "no candidate is fit", "jm-2: excluded; jm-3: excluded; jm-4: unknown", "to and force")
	require.Equal(t, http.StatusCreated, h.order("/v1/groups/flink/include", `{"candidate":"jm-2",`+byAlice+`}`).status)

	require.Equal(t, http.StatusCreated, h.order("/v1/groups/flink/pause", `{`+byAlice+`}`).status)
	refused(transferPath, `{`+byAlice+`}`, "paused", "resume the group first")
	require.Equal(t, http.StatusCreated, h.order("/v1/groups/flink/resume", `{`+byAlice+`}`).status)
	again := orderOf(t, h.order("/v1/groups/flink/resume", `{`+byAlice+`}`))
	require.Equal(t, view.Duplicate, again.Verdict, "what is so already is no fault")
	require.Equal(t, "the group is not paused", again.Reason)
	require.Equal(t, before, h.stored("transfer"))

	require.Equal(t, http.StatusCreated, h.order(transferPath, `{"to":"jm-4","force":true,`+byAlice+`}`).status)
	h.until(func() bool { return h.component().Term.Yield != nil })
	refused(transferPath, `{`+byAlice+`}`, "told to yield already", "told jm-1 to yield to jm-4")
	h.say(revokeS1)
	refused(transferPath, `{`+byAlice+`}`, "nobody leads")
}

// TestOrdersAreChecked has bad input, which is refused by the name of the field.
func TestOrdersAreChecked(t *testing.T) {
	h := staffed(t)
	for body, field := range map[string]string{
		``:                                   "actor",
		`{"reason":"x"}`:                     "actor",
		`{"actor":"alice"}`:                  "reason",
		`{"too":"x",` + byAlice:              "too",
		`{"to":7,` + byAlice:                 "to",
		`{"force":"y",` + byAlice:            "force",
		`{"id":7,` + byAlice:                 "id",
		`{"source":"candidate/x",` + byAlice: "source",
		`{"basis":1,"projector":1,"candidate":"x",` + byAlice: "basis",
		`[`: "event",
	} {
		if strings.HasSuffix(body, byAlice) {
			body += "}"
		}
		a := h.order(transferPath, body)
		require.Equal(t, http.StatusBadRequest, a.status, body+a.body)
		var fields []string
		for _, e := range problemOf(t, a).Errors {
			fields = append(fields, e.Field)
		}
		require.Contains(t, fields, field, body)
	}
	require.Contains(t, problemOf(t, h.order(transferPath, `{"forse":true,`+byAlice+`}`)).Detail, `did you mean "force"?`)
	require.Contains(t, problemOf(t, h.order("/v1/groups/flink/pause", `{"until":"2020-01-01T00:00:00Z",`+byAlice+`}`)).Detail, "has passed")
	for _, query := range []string{"dryRun=perhaps", "wait=published", "wait=done&timeout=1h", "dryrun=true"} {
		require.Equal(t, http.StatusBadRequest, h.order(transferPath+"?"+query, `{`+byAlice+`}`).status, query)
	}
	require.Equal(t, http.StatusUnsupportedMediaType, h.do("POST", transferPath, "application/x-ndjson", `{`+byAlice+`}`).status)
	for _, path := range []string{"/v1/groups/none/components/rest/transfer", "/v1/groups/flink/components/none/transfer", "/v1/groups/none/pause"} {
		require.Equal(t, http.StatusNotFound, h.order(path, `{`+byAlice+`}`).status, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, h.do("GET", transferPath, "", "").status)
	require.Zero(t, h.stored("transfer")+h.stored("pause"))
}

func TestDryRun(t *testing.T) {
	h := staffed(t)
	h.say(`{"kind":"exclude","group":"flink","candidate":"jm-3",` + byAlice + `}`)
	before := h.component()
	rehearse := func(path, body string) (r api.Rehearsal) {
		t.Helper()
		a := h.order(path+"?dryRun=true", body)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.NoError(t, json.Unmarshal([]byte(a.body), &r))
		return r
	}
	r := rehearse(transferPath, `{`+byAlice+`}`)
	require.Equal(t, view.Applied, r.Verdict)
	require.Equal(t, []api.Decided{{Kind: "yield", Component: "rest", Candidate: "jm-1", To: "jm-2", Reason: "upgrade"}}, r.Decided)
	require.Equal(t, "jm-1", r.Prospects[0].Holder)
	require.Equal(t, "jm-2", r.Prospects[0].Next)
	r = rehearse(transferPath, `{"to":"jm-3",`+byAlice+`}`)
	require.Equal(t, view.Invalid, r.Verdict)
	require.Contains(t, r.Advice, "excluded")
	require.Equal(t, view.Invalid, rehearse("/v1/groups/flink/exclude", `{"candidate":"jm-9",`+byAlice+`}`).Verdict)
	require.Equal(t, view.Applied, rehearse("/v1/groups/flink/pause", `{"until":"2100-01-01T00:00:00Z",`+byAlice+`}`).Verdict)
	require.Zero(t, h.stored("transfer")+h.stored("pause"))
	require.Equal(t, before.Component, h.component().Component)
}

// TestOrdersAreRepeated has one id stand for one order.
func TestOrdersAreRepeated(t *testing.T) {
	h := staffed(t)
	body := `{"candidate":"jm-2","until":"2100-01-01T01:00:00+01:00","id":"x",` + byAlice + `}`
	first := orderOf(t, h.order("/v1/groups/flink/exclude", body))
	second := orderOf(t, h.order("/v1/groups/flink/exclude", body))
	require.Equal(t, first.Sequence, second.Sequence)
	require.True(t, second.Duplicate)
	for _, other := range []string{strings.Replace(body, "jm-2", "jm-3", 1), strings.Replace(body, "T01", "T02", 1)} {
		a := h.order("/v1/groups/flink/exclude", other)
		require.Equal(t, http.StatusConflict, a.status, a.body)
		require.Equal(t, api.ProblemPrefix+"id-reused", problemOf(t, a).Type)
	}
	require.Equal(t, 1, h.stored("exclude"))
	var record api.Record
	h.get(fmt.Sprintf("/v1/events/%d", first.Sequence), &record)
	var event struct {
		ID     string `json:"id"`
		Source string `json:"source"`
	}
	require.NoError(t, json.Unmarshal(record.Event, &event))
	require.Equal(t, "operator/alice", event.Source)
	require.Equal(t, "x", event.ID)
}

// TestOperatorsAreLetIn holds that a journal which is nearly full takes orders.
func TestOperatorsAreLetIn(t *testing.T) {
	full := false
	h, _ := startOpen(t, options{size: func(context.Context) (server.Size, error) {
		if full {
			return server.Size{Bytes: 960, MaxBytes: 1000}, nil
		}
		return server.Size{}, nil
	}})
	full = true
	require.Equal(t, http.StatusCreated, h.order("/v1/groups/flink/pause", `{`+byAlice+`}`).status)
}

// TestWhatWasAcknowledgedIsSeen has an order rest on an event that was stored just before it, and not folded yet.
func TestWhatWasAcknowledgedIsSeen(t *testing.T) {
	lag := &sync.Mutex{}
	h, _ := startOpen(t, options{lag: lag})
	lag.Lock()
	stored := h.post(`{"kind":"join","group":"flink","candidate":"new","incarnation":"1","components":["rest"]}`)
	require.Equal(t, http.StatusCreated, stored.status)
	time.AfterFunc(100*time.Millisecond, lag.Unlock)
	a := h.order("/v1/groups/flink/exclude", `{"candidate":"new",`+byAlice+`}`)
	require.Equal(t, http.StatusCreated, a.status, a.body)
}

// TestSomethingCameBetween has the fold refuse what the rehearsal did not.
func TestSomethingCameBetween(t *testing.T) {
	h := staffed(t)
	stored, err := h.log.Append(t.Context(), journal.Event{
		ID: "lost-race", Source: "operator/alice", Group: "flink", Component: "rest", Time: time.Now().UTC(),
		Data: &journal.Transfer{To: "jm-1", Order: journal.Order{Actor: "alice", Reason: "upgrade"}},
	})
	require.NoError(t, err)
	require.NoError(t, h.projector.Wait(t.Context(), stored[0].Sequence))
	a := h.order(transferPath, `{"to":"jm-1","id":"lost-race",`+byAlice+`}`)
	require.Equal(t, http.StatusConflict, a.status, a.body)
	p := problemOf(t, a)
	require.Contains(t, p.Detail, "jm-1 leads already")
	require.Len(t, p.Events, 1)
}
