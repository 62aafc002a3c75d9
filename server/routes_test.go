package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/server"
	"github.com/leadership-journal/journald/view"
)

func TestHostileNamesInPaths(t *testing.T) {
	h := start(t, options{})
	const component = "a/b%2F:c"
	h.say(fmt.Sprintf(`{"kind":"grant","group":"g.1","component":%q,"candidate":"x","session":"S"}`, component))
	path := "/v1/groups/g.1/components/" + url.PathEscape(component)
	var state api.Component
	h.get(path, &state)
	require.Equal(t, component, state.Name)
	var leader api.Leader
	a := h.do("GET", path+"/leader", "", "")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.NoError(t, json.Unmarshal([]byte(a.body), &leader))
	require.Equal(t, component, leader.Component)
	var page api.Records
	h.get("/v1/events?group=g.1&component="+url.QueryEscape(component), &page)
	require.Len(t, page.Records, 1)
	var history api.History
	h.get(path+"/history", &history)
	require.Len(t, history.Terms, 1)
	for _, wrong := range []string{"/v1/groups/g.1/components/a/b%252F:c", "/v1/groups/g.1/components/a%2Fb%2F:c", "/v1/groups/none",
		"/nowhere"} {
		require.Equal(t, http.StatusNotFound, h.do("GET", wrong, "", "").status, wrong)
	}
}

func TestLeader(t *testing.T) {
	h := start(t, options{})
	const path = "/v1/groups/flink/components/rest/leader"
	require.Equal(t, http.StatusNotFound, h.do("GET", path, "", "").status)
	expect := func(query string, status int, state string) {
		t.Helper()
		a := h.do("GET", path+query, "", "")
		require.Equal(t, status, a.status, a.body)
		var l api.Leader
		require.NoError(t, json.Unmarshal([]byte(a.body), &l))
		require.Equal(t, state, l.State)
		head := h.do("HEAD", path+query, "", "")
		require.Equal(t, status, head.status)
		require.Empty(t, head.body)
	}
	h.say(grantS1)
	expect("", 503, "granted")
	h.say(confirmS1)
	expect("", 200, "confirmed")
	expect("?candidate=jm-1", 503, "not-ready")
	h.say(`{"kind":"ready","group":"flink","component":"rest","session":"S1","ready":true}`)
	expect("?candidate=jm-1", 200, "confirmed")
	expect("?candidate=jm-2", 503, "other-leader")
	h.say(`{"kind":"ready","group":"flink","component":"rest","session":"S1","ready":false}`)
	expect("?candidate=jm-1", 503, "not-ready")
	h.say(`{"kind":"ready","group":"flink","component":"rest","session":"S1","ready":true}`,
		`{"kind":"release","group":"flink","component":"rest","session":"S1","reason":"yielded"}`)
	expect("?candidate=jm-1", 503, "released")
	expect("", 200, "confirmed")
	h.say(`{"kind":"withdraw","group":"flink","component":"rest","session":"S1","reason":"test"}`)
	expect("", 503, "withdrawn")
	h.say(revokeS1)
	expect("", 503, "vacant")
	require.Equal(t, http.StatusBadRequest, h.do("GET", path+"?candidate=", "", "").status, "a name that somebody forgot to fill in")
	a := h.do("OPTIONS", path, "", "")
	require.Equal(t, http.StatusNoContent, a.status)
	require.Equal(t, "GET, HEAD, OPTIONS", a.header.Get("Allow"))
}

func TestHistory(t *testing.T) {
	h := start(t, options{})
	h.say(grantS1, confirmS1, revokeS1,
		`{"kind":"grant","group":"flink","component":"rest","candidate":"jm-2","session":"S2"}`,
		`{"kind":"grant","group":"flink","component":"rest","candidate":"jm-3","session":"S3"}`,
		`{"kind":"grant","group":"flink","component":"other","candidate":"jm-3","session":"S4"}`,
		revokeS1)
	var all api.History
	h.get("/v1/groups/flink/components/rest/history", &all)
	var got []string
	for _, term := range all.Terms {
		got = append(got, term.Candidate+" "+term.Session+" "+term.Reason+" "+term.Address)
		require.Equal(t, term.Reason == "", term.Ended.IsZero())
	}
	require.Equal(t, []string{"jm-3 S3  ", "jm-2 S2 superseded ", "jm-1 S1 lost http://jm-1:8081"}, got)
	var page api.History
	h.get("/v1/groups/flink/components/rest/history?limit=2", &page)
	require.Equal(t, all.Terms[:2], page.Terms)
	next := page.Next
	page = api.History{}
	h.get("/v1/groups/flink/components/rest/history?limit=2&cursor="+next, &page)
	require.Equal(t, all.Terms[2:], page.Terms)
	require.Empty(t, page.Next)
}

func TestEventsArePaged(t *testing.T) {
	h := start(t, options{})
	acks := h.say(grantS1, confirmS1, revokeS1, `{"kind":"leave","group":"flink","candidate":"x","incarnation":"1"}`)
	_, err := h.log.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: "leadership.flink.rest.raw", Data: []byte("no event")})
	require.NoError(t, err)
	raw := acks[3].Sequence
	h.until(func() bool { return h.projector.Status().Applied > raw })

	var page api.Records
	h.get("/v1/events?group=flink&component=rest&limit=3", &page)
	require.Len(t, page.Records, 3)
	require.Equal(t, "grant", page.Records[0].Kind)
	require.Equal(t, view.Applied, page.Records[0].Verdict)
	next := page.Next
	require.NotEmpty(t, next)
	page = api.Records{}
	h.get("/v1/events?group=flink&component=rest&limit=3&cursor="+next, &page)
	require.Len(t, page.Records, 1)
	require.Equal(t, view.Invalid, page.Records[0].Verdict)
	require.Equal(t, "no event", page.Records[0].Text)
	require.NotEmpty(t, page.Records[0].Reason)
	require.Empty(t, page.Next)

	for query, want := range map[string]int{
		"kind=confirm": 1, "kind=leave&group=flink": 1, "group=nobody": 0, "from=-1h&kind=grant": 1, "to=-1h": 0,
		fmt.Sprintf("from=seq:%d&to=seq:%d", acks[1].Sequence, acks[2].Sequence): 2, "from=seq:100000": 0, "from=2100-01-01T00:00:00Z": 0,
	} {
		page = api.Records{}
		h.get("/v1/events?"+query, &page)
		require.Len(t, page.Records, want, query)
	}
	for _, query := range []string{"kind=grnt", "component=c", "limit=0", "limit=1001", "cursor=!", "cursor=" + "YQ", "from=yesterday",
		"from=seq:0", "frm=1", "a=%zz"} {
		a := h.do("GET", "/v1/events?"+query, "", "")
		require.Equal(t, http.StatusBadRequest, a.status, query)
		problemOf(t, a)
	}
	require.Equal(t, http.StatusNotFound, h.do("GET", "/v1/events/100000", "", "").status)
	require.Equal(t, http.StatusBadRequest, h.do("GET", "/v1/events/x", "", "").status)
}

func TestGroupsArePaged(t *testing.T) {
	h := start(t, options{})
	for _, g := range []string{"b", "a", "c"} {
		h.say(fmt.Sprintf(`{"kind":"grant","group":%q,"component":"c","candidate":"x","session":"S"}`, g))
	}
	var names []string
	next := ""
	for range 3 {
		var page api.Groups
		h.get("/v1/groups?limit=1&cursor="+next, &page)
		require.Len(t, page.Groups, 1)
		names = append(names, page.Groups[0].Name)
		require.Equal(t, "granted", page.Groups[0].Components[0].Phase)
		next = page.Next
	}
	require.Equal(t, []string{"a", "b", "c"}, names)
	require.Empty(t, next)
	var group api.Group
	h.get("/v1/groups/a", &group)
	require.Equal(t, "x", group.Components["c"].Term.Candidate)
}

func TestReload(t *testing.T) {
	var fail error
	h := start(t, options{reload: func(context.Context) error { return fail }})
	require.Equal(t, http.StatusOK, h.do("POST", "/-/reload", "", "").status)
	fail = errors.New("journald.yaml:3: lissten: is no key")
	a := h.do("POST", "/-/reload", "", "")
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, problemOf(t, a).Detail, "lissten")
	require.Equal(t, http.StatusMethodNotAllowed, h.do("GET", "/-/reload", "", "").status)
}

func TestOtherSitesCannotWrite(t *testing.T) {
	h := start(t, options{})
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		a := h.do("POST", "/v1/events", "", grantS1, header...)
		require.Equal(t, http.StatusForbidden, a.status)
		problemOf(t, a)
	}
}

func TestHealth(t *testing.T) {
	h := start(t, options{})
	h.awaitSample()
	require.Equal(t, answerOf(200, "ok\n"), h.do("GET", "/livez", "", "").short())
	require.Equal(t, answerOf(200, "ready\n"), h.do("GET", "/readyz", "", "").short())
	verbose := h.do("GET", "/readyz?verbose", "", "")
	for _, name := range []string{"[+] log:", "[+] fold:", "[+] projector: this instance acts", "[+] durability:", "[+] targets:"} {
		require.Contains(t, verbose.body, name)
	}
}

type shortAnswer struct {
	status int
	body   string
}

func answerOf(status int, body string) shortAnswer { return shortAnswer{status, body} }

func (a answer) short() shortAnswer { return shortAnswer{a.status, a.body} }

func TestNotReadyWithoutTheLog(t *testing.T) {
	h := start(t, options{size: func(context.Context) (server.Size, error) { return server.Size{}, errors.New("secret host name") }})
	a := h.do("GET", "/readyz?verbose", "", "")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Contains(t, a.body, "[-] log: can't be reached")
	require.NotContains(t, a.body, "secret")
	require.Equal(t, http.StatusOK, h.do("GET", "/livez", "", "").status, "which a restart would not help")
}

func TestMetrics(t *testing.T) {
	h := start(t, options{})
	h.awaitSample()
	h.say(grantS1, confirmS1, strings.Replace(confirmS1, "S1", "S9", 1), revokeS1)
	families, err := h.registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	text := h.do("GET", "/metrics", "", "").body
	for _, line := range []string{
		`journald_events_appended_total{kind="confirm"} 2`,
		`journald_verdicts_total{kind="confirm",verdict="unknown-session"} 1`,
		`journald_terms_total{component="rest",group="flink",reason="lost"} 1`,
		`journald_leader_epoch{component="rest",group="flink"} 2`,
		`journald_projector_active 1`, `leader_election_master_status{name="journald"} 1`,
		`journald_build_info{revision="none",version="test"} 1`, `journald_append_duration_seconds_count 1`,
		`journald_log_last_sequence`, `journald_log_max_bytes`, `journald_projector_lag_seconds`,
	} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, "journald_leader_info{", "nobody leads any more")
}

func TestHealthOfCandidates(t *testing.T) {
	h := start(t, options{})
	for name, status := range map[string]string{"a": "pass", "b": "fail", "c": "", "d": "pass"} {
		h.say(fmt.Sprintf(`{"kind":"join","group":"g","candidate":%q,"incarnation":"1","components":["rest"]}`, name))
		for run := 1; run <= 3 && status != ""; run++ {
			h.say(fmt.Sprintf(`{"kind":"health","group":"g","candidate":%q,"incarnation":"1","check":"disk","status":%q,"run":%d}`, name, status, run))
		}
	}
	h.say(`{"kind":"leave","group":"g","candidate":"d","incarnation":"1"}`)
	text := h.do("GET", "/metrics", "", "").body
	for name, value := range map[string]string{"a": "1", "b": "0", "c": "-1"} {
		require.Contains(t, text, fmt.Sprintf("journald_candidate_health{candidate=%q,group=\"g\"} %s\n", name, value))
	}
	require.NotContains(t, text, `candidate="d"`)

	var events []string
	for i := range 150 {
		events = append(events, fmt.Sprintf(`{"kind":"join","group":"h","candidate":"k%d","incarnation":"1","components":["rest"]}`, i))
	}
	h.say(events...)
	require.Equal(t, 100, strings.Count(h.do("GET", "/metrics", "", "").body, "journald_candidate_health{"))
}

func TestSeriesAreLimited(t *testing.T) {
	h := start(t, options{})
	var events []string
	for i := range 150 {
		events = append(events, fmt.Sprintf(`{"kind":"grant","group":"g","component":"c%d","candidate":"x","session":"S"}`, i))
	}
	h.say(events...)
	require.Equal(t, 100, strings.Count(h.do("GET", "/metrics", "", "").body, "journald_leader_info{"))
}

// TestNoAlertIsLeftOut holds that the limit of series keeps no alert from whoever is on call.
func TestNoAlertIsLeftOut(t *testing.T) {
	rules := policy.Default()
	rules.ConfirmWithin = policy.Duration(time.Millisecond)
	h := start(t, options{settings: projector.Settings{Defaults: rules, Groups: map[string]projector.Group{}}})
	var events []string
	for i := range 120 {
		events = append(events, fmt.Sprintf(`{"kind":"grant","group":"g","component":"c%d","candidate":"x","session":"S"}`, i))
	}
	h.say(events...)
	h.until(func() bool {
		raised := 0
		h.projector.Read(func(v *view.View) {
			for _, c := range v.Group("g").Components {
				raised += len(c.Alerts)
			}
		})
		return raised == 120
	})
	text := h.do("GET", "/metrics", "", "").body
	require.Equal(t, 101, strings.Count(text, "journald_alerts_active{"))
	require.Contains(t, text, `journald_alerts_active{component="other",group="other",name="GrantedUnconfirmed"} 20`)
}

func TestPage(t *testing.T) {
	h := start(t, options{})
	require.Contains(t, h.do("GET", "/", "", "").body, "journald publish grant")
	h.say(grantS1, confirmS1, `{"kind":"grant","group":"flink","component":"b","candidate":"<script>alert(1)</script>","session":"S"}`)
	a := h.do("GET", "/", "", "")
	require.Contains(t, a.body, "flink/rest")
	require.NotContains(t, a.body, "Candidates")
	require.Contains(t, a.body, "http://jm-1:8081")
	require.NotContains(t, a.body, "<script>alert")
	require.NotContains(t, a.body, "style=")
	require.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'")
	h.say(`{"kind":"join","group":"flink","candidate":"jm-2","incarnation":"1","components":["rest"]}`,
		`{"kind":"health","group":"flink","candidate":"jm-2","incarnation":"1","check":"disk","status":"fail","reason":"<b>full","run":1}`,
		`{"kind":"pause","group":"flink","actor":"alice","reason":"test"}`)
	body := h.do("GET", "/", "", "").body
	for _, words := range []string{"flink/jm-2", "unknown (1 failed)", "disk: &lt;b&gt;full", "paused until it is resumed"} {
		require.Contains(t, body, words)
	}
	for name, contentType := range map[string]string{"page.js": "text/javascript; charset=utf-8",
		"page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		asset := h.do("GET", "/assets/"+name, "", "")
		require.Equal(t, http.StatusOK, asset.status)
		require.Equal(t, contentType, asset.header.Get("Content-Type"))
		require.Contains(t, a.body+asset.body, name)
	}
	for _, name := range []string{"page.html", "none", "..%2Fpage.go"} {
		require.Equal(t, http.StatusNotFound, h.do("GET", "/assets/"+name, "", "").status, name)
	}
}
