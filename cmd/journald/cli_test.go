package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
)

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

// call runs a command line in this process.
func call(ctx context.Context, stdin string, environ []string, args ...string) result {
	var out, err bytes.Buffer
	p := &process{in: strings.NewReader(stdin), out: &out, err: &err, environ: environ}
	code := p.execute(ctx, args)
	return result{code, out.String(), err.String()}
}

// serving is a `journald serve` in this process.
type serving struct {
	t       *testing.T
	url     string
	environ []string
	stop    context.CancelCauseFunc
	hangups chan os.Signal
	ended   chan int
	said    *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serve starts a journald and waits until it says where it listens, and is ready.
func serve(t *testing.T, args ...string) *serving {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	s := &serving{t: t, stop: stop, hangups: make(chan os.Signal), ended: make(chan int, 1), said: &lockedBuffer{}}
	reader, writer := io.Pipe()
	p := &process{in: strings.NewReader(""), out: io.Discard, err: writer, hangups: s.hangups}
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
	go func() {
		s.ended <- p.execute(ctx, args)
		_ = writer.Close()
	}()
	listens := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			fmt.Fprintln(s.said, lines.Text())
			if rest, ok := strings.CutPrefix(lines.Text(), "journald listens on "); ok {
				listens <- rest[:strings.IndexByte(rest, ',')]
			}
		}
		close(listens)
	}()
	select {
	case s.url = <-listens:
	case <-time.After(30 * time.Second):
	}
	require.NotEmpty(t, s.url, s.said)
	s.environ = []string{"JOURNALD_SERVER=" + s.url, "USER=alice"}
	t.Cleanup(func() { s.end(errTerminated) })
	s.await("/readyz")
	return s
}

// await waits until a path answers 200.
func (s *serving) await(path string) {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
		require.NoError(s.t, err)
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			require.NoError(s.t, answer.Body.Close())
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
	}
	require.FailNow(s.t, path+" never answered 200", s.said)
}

// end stops it as a signal would, and says how it ended.
func (s *serving) end(why error) int {
	s.stop(why)
	code := <-s.ended
	s.ended <- code
	return code
}

func (s *serving) run(args ...string) result { return call(s.t.Context(), "", s.environ, args...) }

func (s *serving) must(args ...string) string {
	s.t.Helper()
	r := s.run(args...)
	require.Zero(s.t, r.code, "%v: %s", args, r.err)
	return r.out
}

func TestPublishAndGet(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	require.Contains(t, s.said.String(), "publish grant demo/web")
	none := s.run("get", "leaders")
	require.Equal(t, result{0, "", "No component is known yet; " +
		"`journald publish grant GROUP/COMPONENT candidate=... session=...` makes one known.\n"}, none)

	s.must("publish", "grant", "demo/web", "candidate=web-1", "session=123", "lock.kind=lease", "lock.revision=7")
	out := s.must("publish", "confirm", "demo/web", "candidate=web-1", "session=123", "address=http://web-1:8080", "properties.zone=a",
		"--wait", "published")
	require.Contains(t, out, "applied, published")
	s.must("publish", "join", "demo", "candidate=web-1", "incarnation=1", "components=web,api", "priority=3", "--wait", "applied")

	table := s.must("get", "leaders")
	require.Contains(t, table, "COMPONENT  STATE      HOLDER  ADDRESS            EPOCH")
	require.Contains(t, table, "demo/web   confirmed  web-1   http://web-1:8080")
	require.NotContains(t, table, "SESSION")
	require.Contains(t, s.must("get", "leaders", "demo/web", "-o", "wide"), "123")
	require.Equal(t, "demo/web\n", s.must("get", "leaders", "demo/web", "-o", "name"))
	var rows []api.Row
	require.NoError(t, json.Unmarshal([]byte(s.must("get", "leaders", "demo/web", "-o", "json")), &rows))
	require.Equal(t, "a", rows[0].Leader.Properties["zone"])
	require.Contains(t, s.must("get", "leaders", "-o", "yaml"), "phase: confirmed")
	require.Contains(t, s.must("get", "candidates"), "web,api")
	require.Contains(t, s.must("get", "groups"), "demo")
	require.Contains(t, s.must("get", "terms"), "web-1")
	require.Equal(t, 1, strings.Count(s.must("get", "events", "--kind", "confirm", "-o", "jsonl"), "\n"))
	require.Contains(t, s.must("get", "events", "demo/web", "--from", "-1h"), "candidate=web-1 session=123")
	require.Contains(t, s.must("describe", "demo/web"), "http://web-1:8080, session 123, candidate web-1")
	require.Contains(t, s.must("describe", "demo/web", "-o", "yaml"), "phase: confirmed")
	require.Contains(t, s.must("history", "demo/web"), "open")
}

func TestNamesWithSlashes(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.must("publish", "grant", "demo/a/b%2F:c", "candidate=x", "session=S", "--wait", "applied")
	require.Contains(t, s.must("describe", "demo/a/b%2F:c"), "demo/a/b%2F:c")
	require.Contains(t, s.must("history", "demo/a/b%2F:c"), "x")
}

func TestExitCodes(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.must("publish", "grant", "demo/web", "candidate=web-1", "session=S1", "--wait", "applied")
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no command":       {[]string{"nope"}, 2, "unknown command"},
		"no flag":          {[]string{"get", "leaders", "--nope"}, 2, "unknown flag"},
		"no arguments":     {[]string{"describe"}, 2, "accepts 1 arg"},
		"no noun":          {[]string{"get", "things"}, 2, "is none of leaders"},
		"no format":        {[]string{"get", "leaders", "-o", "xml"}, 2, "-o xml is none of"},
		"no name":          {[]string{"describe", "demo"}, 2, "GROUP/COMPONENT"},
		"no kind":          {[]string{"publish", "grnt", "demo/web"}, 2, `did you mean "grant"`},
		"no pair":          {[]string{"publish", "grant", "demo/web", "candidate"}, 2, "key=value"},
		"no number":        {[]string{"publish", "confirm", "demo/web", "attempt=x"}, 2, "attempt=x"},
		"no JSON":          {[]string{"publish", "confirm", "demo/web", "properties:={"}, 2, "properties"},
		"file and event":   {[]string{"publish", "-f", "x", "grant", "demo/web"}, 2, "not both"},
		"no file":          {[]string{"publish", "-f", "/none"}, 2, "no such file"},
		"bad server":       {[]string{"get", "leaders", "--server", "nowhere"}, 2, "is no URL"},
		"unknown group":    {[]string{"get", "leaders", "none"}, 1, "journald get groups"},
		"unknown":          {[]string{"describe", "demo/none"}, 1, "no component of this name"},
		"unreachable":      {[]string{"get", "leaders", "--server", "http://127.0.0.1:1"}, 3, "journald serve"},
		"unknown session":  {[]string{"publish", "confirm", "demo/web", "candidate=a", "session=S9", "address=x", "--wait", "applied"}, 5, ""},
		"refused order":    {[]string{"publish", "transfer", "demo/web", "to=nobody", "reason=test", "--wait", "applied"}, 1, ""},
		"bad config":       {[]string{"config", "validate", "--listen", "nowhere"}, 2, "--listen"},
		"missing config":   {[]string{"serve", "--config", "/none.yaml"}, 2, "config example"},
		"no subcommand":    {[]string{"config"}, 2, "show, validate or example"},
		"port is taken":    {[]string{"serve", "--listen", strings.TrimPrefix(s.url, "http://"), "--data", t.TempDir()}, 2, "another journald"},
		"version":          {[]string{"version"}, 0, ""},
		"help":             {[]string{"help"}, 0, ""},
		"duplicate is yes": {[]string{"publish", "grant", "demo/web", "candidate=web-1", "session=S1", "--wait", "applied"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run(c.args...)
			require.Equal(t, c.code, r.code, r.err)
			require.Contains(t, r.err, c.says)
			if c.code == exitUsage {
				require.Empty(t, r.out, "what goes wrong is not said on standard output")
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hanging.Close()
	r := call(t.Context(), "", nil, "get", "leaders", "--server", hanging.URL, "--timeout", "50ms")
	require.Equal(t, exitTimeout, r.code)
	require.Contains(t, r.err, "--timeout waits longer")
	r = call(t.Context(), "", nil, "publish", "grant", "a/b", "candidate=x", "session=S", "--server", "http://127.0.0.1:1", "--id", "7")
	require.Equal(t, exitUnreachable, r.code)
	require.Contains(t, r.err, "--id 7 is harmless")
}

func TestAStrangerAnswers(t *testing.T) {
	for status, body := range map[int]string{404: "<html>", 200: "<html>"} {
		stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		r := call(t.Context(), "", nil, "get", "leaders", "--server", stranger.URL)
		stranger.Close()
		require.Equal(t, exitUnreachable, r.code, r.err)
	}
}

func TestInterrupted(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	reader, writer := io.Pipe()
	p := &process{in: strings.NewReader(""), out: writer, err: io.Discard, environ: s.environ}
	ended := make(chan int, 1)
	go func() { ended <- p.execute(ctx, []string{"get", "leaders", "-w", "-o", "jsonl"}) }()
	lines := bufio.NewReader(reader)
	s.must("publish", "grant", "demo/web", "candidate=web-1", "session=S1")
	s.must("publish", "confirm", "demo/web", "candidate=web-1", "session=S1", "address=a")
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if strings.Contains(line, `"confirmed"`) {
			break
		}
		s.must("publish", "grant", "demo/other", "candidate=web-1", "session=S1") // whatever comes, it goes on
	}
	cancel(errInterrupted)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	require.Equal(t, exitInterrupted, <-ended)
}

func TestTermination(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, "--data", dir)
	s.must("publish", "grant", "demo/web", "candidate=web-1", "session=S1")
	require.Equal(t, exitYes, s.end(errTerminated))
	again := serve(t, "--data", dir)
	require.Contains(t, again.must("get", "leaders"), "web-1", "what was acknowledged is there")
	require.Equal(t, exitInterrupted, again.end(errInterrupted))
}

func TestPublishFile(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	var events strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&events, `{"kind":"grant","group":"g","component":"c%d","candidate":"x","session":"S"}`+"\n", i)
	}
	name := filepath.Join(t.TempDir(), "events.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(events.String()), 0o600))
	require.Equal(t, 1200, strings.Count(s.must("publish", "-f", name, "-o", "jsonl"), "\n"))
	r := call(t.Context(), events.String()+"{}\n", s.environ, "publish", "-f", "-", "-o", "name")
	require.Equal(t, exitUsage, r.code)
	require.Equal(t, 1000, strings.Count(r.out, "\n"))
	require.Contains(t, r.err, "tail -n +1001")
	require.Contains(t, r.err, "kind")
}

func TestReloading(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journald.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write("groups: [{name: one}]\n")
	s := serve(t, "--data", t.TempDir(), "--config", name)
	s.must("publish", "grant", "two/web", "candidate=web-1", "session=S1", "--wait", "applied")
	post := func(want int) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/-/reload", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, want, answer.StatusCode, string(text))
		return string(text)
	}
	write("groups: [{nam: one}]\n")
	require.Contains(t, post(http.StatusBadRequest), `did you mean \"name\"`)
	s.hangups <- nil
	s.hangups <- nil // the first one was handled
	require.Contains(t, s.said.String(), "the one in force stays")
	write("groups: [{name: two, policy: {flapping: 9}}]\n")
	post(http.StatusOK)
	for !strings.Contains(s.must("get", "events", "two", "--kind", "policy", "-o", "jsonl"), `"flapping":9`) {
		require.NoError(t, t.Context().Err())
	}
}

func TestConfigCommands(t *testing.T) {
	r := call(t.Context(), "", []string{"JOURNALD_NATS_LISTEN=127.0.0.1:4222"}, "config", "show", "--data", "/d")
	require.Zero(t, r.code, r.err)
	require.Regexp(t, `(?m)^nats\.listen +127\.0\.0\.1:4222 +environment JOURNALD_NATS_LISTEN$`, r.out)
	require.Regexp(t, `(?m)^data +/d +flag --data$`, r.out)
	r = call(t.Context(), "", nil, "config", "example")
	require.Zero(t, r.code)
	name := filepath.Join(t.TempDir(), "journald.yaml")
	require.NoError(t, os.WriteFile(name, []byte(r.out), 0o600))
	r = call(t.Context(), "", nil, "config", "validate", "--config", name)
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "1 groups")
	require.NoError(t, os.WriteFile(name, []byte("groups: [{name: g, targets: [{name: t, kind: k8s/confgmap}]}]"), 0o600))
	r = call(t.Context(), "", nil, "config", "validate", "--config", name)
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "k8s/configmap")
}

func TestCompletion(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	s.must("publish", "grant", "demo/web", "candidate=web-1", "session=S1", "--wait", "applied")
	require.Contains(t, s.must("__complete", "describe", "de"), "demo/web\n")
	require.Contains(t, s.must("__complete", "publish", ""), "confirm\n")
	require.Contains(t, s.must("__complete", "get", "leaders", "demo/"), "demo/web\n")
	require.Contains(t, s.must("completion", "bash"), "journald")
	began := time.Now()
	r := call(t.Context(), "", nil, "__complete", "describe", "", "--server", "http://127.0.0.1:1")
	require.Zero(t, r.code)
	require.Less(t, time.Since(began), 5*time.Second)
}

// TestNoCluster has a group whose target no cluster can be found for: that target fails, with a clear text, and
// everything else goes on.
func TestNoCluster(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journald.yaml")
	text := "kubernetes: {kubeconfig: /none/kubeconfig}\n" +
		"groups: [{name: g, targets: [{name: cm, kind: k8s/configmap, layout: json, namespace: n, object: o}]}]\n"
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	s := serve(t, "--data", t.TempDir(), "--config", name)
	for _, group := range []string{"g", "other"} {
		s.must("publish", "grant", group+"/web", "candidate=web-1", "session=S1", "--wait", "applied")
	}
	s.must("publish", "confirm", "g/web", "candidate=web-1", "session=S1", "address=a", "--wait", "applied")
	require.Contains(t, s.must("publish", "confirm", "other/web", "candidate=web-1", "session=S1", "address=a", "--wait", "published"),
		"published")
	for !strings.Contains(s.must("describe", "g/web"), "there is no file /none/kubeconfig") {
		require.NoError(t, t.Context().Err())
	}
	require.Contains(t, s.must("describe", "g/web"), "failing")
	r := s.run("publish", "confirm", "g/web", "candidate=web-1", "session=S1", "address=b", "--wait", "published", "--timeout", "50ms")
	require.Equal(t, exitTimeout, r.code, r.err)
	require.Contains(t, r.out, "applied", "what is known is said")
	require.Contains(t, r.err, "the events are stored")
}

func TestDemo(t *testing.T) {
	began := time.Now()
	r := call(t.Context(), "", nil, "demo", "flink")
	require.Zero(t, r.code, r.err)
	require.Less(t, time.Since(began), 10*time.Second)
	require.Contains(t, r.out, "ERASED")
	require.Contains(t, r.out, "journald: 0 erased")
	for line := range strings.Lines(r.out) {
		require.LessOrEqual(t, len(line), 81, line)
	}
	require.Equal(t, exitUsage, call(t.Context(), "", nil, "demo", "nothing").code)
}

func TestScenarios(t *testing.T) {
	dir := t.TempDir()
	write := func(name, expected string) string {
		path := filepath.Join(dir, name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte("name: "+name+"\nabout: a grant\nsteps:\n"+
			"  - grant: {component: rest, candidate: jm-1, session: S1}\n  - expect: {view: {rest: {phase: "+expected+"}}}\n"), 0o600))
		return path
	}
	good := write("good", "granted")
	r := call(t.Context(), "", nil, "test", good)
	require.Equal(t, exitYes, r.code, r.err)
	require.Contains(t, r.out, "ok    "+good)
	require.Contains(t, call(t.Context(), "", nil, "test", "-v", good).out, "takeover")
	write("wrong", "confirmed")
	r = call(t.Context(), "", nil, "test", dir)
	require.Equal(t, exitNo, r.code)
	require.Contains(t, r.out, "ok    "+good)
	require.Contains(t, r.out, "step 2")
	require.Contains(t, r.err, "1 of 2 scenarios failed")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("name: bad\nstep: []\n"), 0o600))
	for _, args := range [][]string{
		{filepath.Join(dir, "bad.yaml")}, {"/none.yaml"}, {t.TempDir()}, {"--backend", "paper", good}, {"--backend", "k8s",
			"--kubeconfig", "/none", good}, {},
	} {
		r = call(t.Context(), "", nil, append([]string{"test"}, args...)...)
		require.Equal(t, exitUsage, r.code, r.err)
		require.NotEmpty(t, r.err)
	}
}

// TestPublishStraightToNATS has a service write to the journal with no HTTP between.
func TestPublishStraightToNATS(t *testing.T) {
	s := serve(t, "--data", t.TempDir(), "--nats-listen", "127.0.0.1:0")
	_, url, ok := strings.Cut(s.said.String(), "NATS clients: ")
	require.True(t, ok, s.said)
	conn, err := nats.Connect(strings.TrimSpace(strings.SplitN(url, "\n", 2)[0]))
	require.NoError(t, err)
	defer conn.Close()
	say := func(subject, text string) {
		answer, err := conn.RequestWithContext(t.Context(), subject, []byte(text))
		require.NoError(t, err)
		require.Contains(t, string(answer.Data), `"stream":"LEADERSHIP"`)
	}
	say("leadership.demo.web.grant", `{"specversion":"1.0","id":"1","source":"candidate/web-1","type":"leadership.grant.v1",`+
		`"subject":"demo/web","data":{"candidate":"web-1","session":"S1"}}`)
	say("leadership.demo.web.grant", "not an event")
	s.must("publish", "confirm", "demo/web", "candidate=web-1", "session=S1", "address=a", "--wait", "applied")
	require.Contains(t, s.must("get", "leaders"), "confirmed")
	require.Contains(t, s.must("get", "events", "-o", "wide"), "invalid")
}
