package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/view"
)

// staff has web-1 lead demo/web, with web-2 fit to take over and web-3 failing.
func (s *serving) staff() {
	s.t.Helper()
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		s.must("publish", "join", "demo", "candidate="+name, "incarnation=1", "components=web")
		status := "pass"
		if name == "web-3" {
			status = "fail"
		}
		for run := range 3 {
			s.must("publish", "health", "demo", "candidate="+name, "incarnation=1", "check=disk", "status="+status, "reason=full",
				"run="+strconv.Itoa(run+1))
		}
	}
	s.lead("web-1", "S1")
}

func (s *serving) lead(name, session string) {
	s.t.Helper()
	s.must("publish", "grant", "demo/web", "candidate="+name, "session="+session)
	s.must("publish", "confirm", "demo/web", "candidate="+name, "session="+session, "address=http://"+name, "--wait", "published")
}

// told waits until the holder was told to yield.
func (s *serving) told() {
	s.t.Helper()
	for !strings.Contains(s.must("describe", "demo/web"), "to give it to") {
		require.NoError(s.t, s.t.Context().Err())
	}
}

func TestTransfer(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.staff()
	host, err := os.Hostname()
	require.NoError(t, err)

	dry := s.run("transfer", "demo/web", "--reason", "drain", "--dry-run")
	require.Zero(t, dry.code, dry.err)
	for _, words := range []string{
		"transfer demo/web, by alice@" + host, "it would be applied", "web-1 is told to yield web to web-2: drain",
		"web-1 leads, web-2 would follow", "fail (disk failed 3 times in a row: full)",
	} {
		require.Contains(t, dry.out, words)
	}
	require.Equal(t, "Nothing was stored.\n", dry.err)
	refused := s.run("transfer", "demo/web", "--to", "web-3", "--reason", "drain", "--dry-run", "-o", "json")
	require.Equal(t, exitNo, refused.code)
	var rehearsals []api.Rehearsal
	require.NoError(t, json.Unmarshal([]byte(refused.out), &rehearsals))
	require.Equal(t, view.Invalid, rehearsals[0].Verdict)
	require.NotContains(t, s.must("get", "events", "-o", "jsonl"), `"kind":"transfer"`)

	waiting := make(chan result, 1)
	go func() {
		waiting <- call(t.Context(), "", s.environ, "transfer", "demo/web", "--reason", "drain", "--wait", "--timeout", "30s", "--actor", "bob")
	}()
	s.told()
	require.Contains(t, s.must("get", "leaders", "-o", "wide"), "to web-2")
	s.must("publish", "release", "demo/web", "session=S1", "reason=yielded", "--wait", "applied")
	require.Contains(t, s.must("get", "leaders", "-o", "wide"), "released")
	s.must("publish", "revoke", "demo/web", "session=S1", "reason=yielded")
	select {
	case r := <-waiting:
		require.Fail(t, "it did not wait", r)
	default:
	}
	s.lead("web-2", "S2")
	r := <-waiting
	require.Zero(t, r.code, r.err)
	require.Regexp(t, `transfer +demo/web +applied +\d+ +bob +web-2 +\d+ +yes\n`, r.out)
	story := r.err
	for _, words := range []string{
		"bob hands demo/web over from web-1 to the best candidate: drain\n", "web-1 was told to yield to web-2\n",
		"web-1 has stopped: yielded\n", "web-1's term ended: yielded\n", "granted to web-2 as epoch ", "web-2 confirmed http://web-2\n",
	} {
		_, rest, found := strings.Cut(story, words)
		require.True(t, found, "%q, in this order, in %s", words, r.err)
		story = rest
	}
}

func TestTransferIsNotWaitedForForEver(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.staff()
	s.must("transfer", "demo/web", "--reason", "drain", "--id", "7")
	s.told()
	args := []string{"transfer", "demo/web", "--reason", "drain", "--wait", "--timeout", "100ms", "--id", "7"}
	r := s.run(args...)
	require.Equal(t, exitTimeout, r.code, r.err)
	require.Empty(t, r.out)
	require.Contains(t, r.err, "web-1 was told by record")
	require.Contains(t, r.err, "--id 7 goes on waiting")
	s.must("publish", "revoke", "demo/web", "session=S1", "reason=yielded")
	s.lead("web-2", "S2")
	require.Contains(t, s.must(args...), "web-2")
	r = s.run("transfer", "demo/web", "--to", "web-1", "--reason", "other", "--id", "7")
	require.Equal(t, exitConflict, r.code, r.err)
	require.Contains(t, r.err, "take a new one")
}

func TestExcludeAndPause(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.staff()
	require.Regexp(t, `exclude +demo +applied +\d+ +alice@`, s.must("exclude", "demo", "web-2", "--reason", "update", "--for", "2h"))
	require.Contains(t, s.must("get", "candidates"), "excluded until "+time.Now().UTC().Add(2*time.Hour).Format("2006-01-02T15:"))
	require.Contains(t, s.must("get", "candidates"), "fail (3 failed)")
	require.Regexp(t, `Candidate web-2: +pass, last run \S+ ago: excluded until `, s.must("describe", "demo/web"))
	r := s.run("transfer", "demo/web", "--reason", "drain")
	require.Equal(t, exitNo, r.code)
	require.Contains(t, r.err, "no candidate is fit to take over")
	require.Contains(t, r.err, "web-2: excluded until")
	require.Contains(t, s.must("include", "demo", "web-2", "--reason", "updated"), "applied")
	again := s.run("include", "demo", "web-2", "--reason", "updated")
	require.Zero(t, again.code)
	require.Contains(t, again.err, "web-2 is not excluded")

	s.must("pause", "demo", "--reason", "network", "--until", "2100-01-01T00:00:00Z")
	require.Regexp(t, `Paused: +no yields and no elections until 2100-01-01T00:00:00Z`, s.must("describe", "demo/web"))
	s.must("resume", "demo", "--reason", "network")
	require.NotContains(t, s.must("describe", "demo/web"), "Paused")
}

func TestOrdersExitCodes(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.staff()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no reason":         {[]string{"transfer", "demo/web"}, 2, "--reason"},
		"no component":      {[]string{"transfer", "demo", "--reason", "x"}, 2, "GROUP/COMPONENT"},
		"no candidate":      {[]string{"exclude", "demo", "--reason", "x"}, 2, "accepts 2 arg"},
		"a component":       {[]string{"pause", "demo/web", "--reason", "x"}, 2, "whole group, such as demo"},
		"both":              {[]string{"pause", "demo", "--reason", "x", "--for", "1h", "--until", "2100-01-01T00:00:00Z"}, 2, "not both"},
		"past":              {[]string{"pause", "demo", "--reason", "x", "--until", "2020-01-01T00:00:00Z"}, 2, "has passed"},
		"negative":          {[]string{"pause", "demo", "--reason", "x", "--for", "-1h"}, 2, "no time to come"},
		"no time":           {[]string{"pause", "demo", "--reason", "x", "--until", "tomorrow"}, 2, "until"},
		"no format":         {[]string{"pause", "demo", "--reason", "x", "-o", "xml"}, 2, "-o xml"},
		"unknown group":     {[]string{"resume", "dmo", "--reason", "x"}, 1, "never spoke of a group"},
		"unknown component": {[]string{"transfer", "demo/wb", "--reason", "x"}, 1, "no component"},
		"unknown waited":    {[]string{"transfer", "demo/wb", "--reason", "x", "--wait"}, 1, "no component"},
		"unknown candidate": {[]string{"exclude", "demo", "wbe-2", "--reason", "x"}, 1, `did you mean "web-2"?`},
		"leads already":     {[]string{"transfer", "demo/web", "--to", "web-1", "--reason", "x"}, 1, "leads already"},
		"unreachable": {[]string{"pause", "demo", "--reason", "x", "--id", "7", "--for", "1h", "--server", "http://127.0.0.1:1"}, 3,
			"--id 7 --until 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run(c.args...)
			require.Equal(t, c.code, r.code, r.err)
			require.Contains(t, r.err, c.says)
			require.Empty(t, r.out)
		})
	}
}

func TestOrdersAreCompleted(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.staff()
	s.must("exclude", "demo", "web-3", "--reason", "x")
	complete := func(args ...string) string { return s.must(append([]string{"__complete"}, args...)...) }
	require.Contains(t, complete("transfer", "de"), "demo/web\n")
	require.NotContains(t, complete("transfer", "de"), "demo\n")
	require.Contains(t, complete("pause", ""), "demo\n")
	require.NotContains(t, complete("pause", ""), "demo/web\n")
	require.Equal(t, "web-1\nweb-2\n:4\n", complete("exclude", "demo", "web"))
	require.Equal(t, "web-3\n:4\n", complete("include", "demo", ""))
	require.Equal(t, "web-2\nweb-3\n:4\n", complete("transfer", "demo/web", "--to", ""))
	require.Equal(t, ":4\n", complete("include", "demo", "web-3", ""))
}

func TestOrdersAreInterrupted(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.staff()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan result, 1)
	go func() { ended <- call(ctx, "", s.environ, "transfer", "demo/web", "--reason", "drain", "--wait") }()
	s.told()
	cancel(errInterrupted)
	require.Equal(t, exitInterrupted, (<-ended).code)
}
