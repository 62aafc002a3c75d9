package health_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/health"
)

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("all is well\n")) })
	mux.HandleFunc("HEAD /head", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no disk\nat all", http.StatusServiceUnavailable)
	})
	mux.Handle("/moved", http.RedirectHandler("/ok", http.StatusTemporaryRedirect))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, c := range []struct {
		http health.HTTP
		want string // in the error; empty: none
	}{
		{health.HTTP{URL: "/ok"}, ""},
		{health.HTTP{URL: "/ok", Contains: "is well"}, ""},
		{health.HTTP{URL: "/ok", Contains: "is bad"}, `does not contain "is bad"`},
		{health.HTTP{URL: "/ok", Status: 204}, "answers 200 OK: all is well"},
		{health.HTTP{URL: "/head", Method: "HEAD"}, ""},
		{health.HTTP{URL: "/bad"}, "/bad answers 503 Service Unavailable: no disk"},
		{health.HTTP{URL: "/bad", Status: 503}, ""},
		{health.HTTP{URL: "/moved"}, "answers 307 Temporary Redirect"},
		{health.HTTP{URL: "/moved", Status: 307}, ""},
	} {
		c.http.URL = server.URL + c.http.URL
		p, err := c.http.Probe()
		require.NoError(t, err)
		if err = p(t.Context()); c.want == "" {
			require.NoError(t, err, c.http)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}

// A server that takes no connections any more is found out, though one was made before.
func TestHTTPConnectsAnew(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	p, err := health.HTTP{URL: server.URL}.Probe()
	require.NoError(t, err)
	require.NoError(t, p(t.Context()))
	require.NoError(t, server.Listener.Close())
	require.ErrorIs(t, p(t.Context()), syscall.ECONNREFUSED)
}

func TestHTTPS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(ca, text, 0o600))
	p, err := health.HTTP{URL: server.URL, CA: ca}.Probe()
	require.NoError(t, err)
	require.NoError(t, p(t.Context()))
	p, err = health.HTTP{URL: server.URL}.Probe()
	require.NoError(t, err)
	require.ErrorContains(t, p(t.Context()), "certificate")
}

func TestBadHTTPIsRefused(t *testing.T) {
	_, err := health.HTTP{URL: "localhost:80", Method: "POST", Status: 99, CA: "/none"}.Probe()
	require.EqualError(t, err, "read the CA: open /none: no such file or directory\n"+
		`"localhost:80" is no URL such as http://127.0.0.1:8080/health`+"\n"+
		`method "POST" is neither GET nor HEAD`+"\n"+
		"status 99 is not between 100 and 599")
	_, err = health.HTTP{URL: "http://h", Method: "HEAD", Contains: "x"}.Probe()
	require.ErrorContains(t, err, "an answer to HEAD has no body")
	empty := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = health.HTTP{URL: "http://h", CA: empty}.Probe()
	require.ErrorContains(t, err, "has no certificate in a PEM block")
}

func TestTCP(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p, err := health.TCP{Address: listener.Addr().String()}.Probe()
	require.NoError(t, err)
	require.NoError(t, p(t.Context()))
	require.NoError(t, listener.Close())
	require.ErrorIs(t, p(t.Context()), syscall.ECONNREFUSED)
	for _, address := range []string{"", "host", ":80", "host:0", "host:http", "host:70000"} {
		_, err := health.TCP{Address: address}.Probe()
		require.ErrorContains(t, err, "is not host:port", address)
	}
}

func sh(t *testing.T, script string) health.Probe {
	t.Helper()
	p, err := health.Exec{Command: []string{"/bin/sh", "-c", script, "sh", "an argument"}, Dir: t.TempDir(), Env: []string{"NAME=value"}}.Probe()
	require.NoError(t, err)
	return p
}

func TestExec(t *testing.T) {
	require.NoError(t, sh(t, `test "$1" = "an argument" && test $NAME = value && touch here`)(t.Context()))
	require.EqualError(t, sh(t, "exit 3")(t.Context()), "/bin/sh: exit status 3: it printed nothing")
	require.EqualError(t, sh(t, "echo on the way; echo no disk >&2; exit 3")(t.Context()), "/bin/sh: exit status 3: on the way\nno disk\n")
	err := sh(t, "yes | head -c 1000000; echo the end; exit 1")(t.Context())
	require.Less(t, len(err.Error()), 600)
	require.True(t, strings.HasSuffix(err.Error(), "y\nthe end\n"), err)
	_, err = health.Exec{}.Probe()
	require.EqualError(t, err, "there is no command to run")
	_, err = health.Exec{Command: []string{"no-such-program"}}.Probe()
	require.ErrorContains(t, err, "no-such-program")
}

// alive says whether the process whose id a file has is there.
func alive(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(state), ") Z ")
}

// At the deadline everything that the program started is killed.
func TestExecAtItsDeadline(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for !writtenTo(pid) && t.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		cancel(errors.New("the deadline"))
	}()
	require.ErrorContains(t, sh(t, "sleep 1000 & echo $! > "+pid+"; wait")(ctx), "killed")
	require.Eventually(t, func() bool { return !alive(t, pid) }, 10*time.Second, time.Millisecond)
}

func writtenTo(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.HasSuffix(string(text), "\n")
}

// What a program leaves behind with its output is not waited for for long, and killed.
func TestExecThatLeavesSomethingBehind(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	require.ErrorContains(t, sh(t, "sleep 1000 & echo $! > "+pid)(t.Context()), "what it left behind holds its output")
	require.Eventually(t, func() bool { return !alive(t, pid) }, 10*time.Second, time.Millisecond)
}

func TestProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	p, err := health.Progress(health.Number(path), 2)
	require.NoError(t, err)
	require.ErrorIs(t, p(t.Context()), os.ErrNotExist)
	write("5\n")
	require.NoError(t, p(t.Context()), "there is nothing to compare it with")
	require.NoError(t, p(t.Context()))
	require.EqualError(t, p(t.Context()), "no progress: it has been 5 for 2 runs")
	require.EqualError(t, p(t.Context()), "no progress: it has been 5 for 3 runs")
	write("1")
	require.NoError(t, p(t.Context()), "a worker that was restarted")
	write("one")
	require.ErrorContains(t, p(t.Context()), `has no whole number in it: "one"`)
	write("1")
	require.NoError(t, p(t.Context()))
	require.ErrorContains(t, p(t.Context()), "no progress: it has been 1 for 2 runs")
}

func TestProgressOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	p, err := health.Progress(health.Writes(path), 1)
	require.NoError(t, err)
	require.NoError(t, p(t.Context()))
	require.ErrorContains(t, p(t.Context()), "no progress: it has been 1 bytes of 2")
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	require.NoError(t, p(t.Context()))
	require.NoError(t, os.WriteFile(path, []byte("xx"), 0o600))
	require.NoError(t, p(t.Context()))
}

func TestProgressOfAFunction(t *testing.T) {
	n := uint64(0)
	p, err := health.Progress(func(context.Context) (uint64, error) { n++; return n / 2, nil }, 2)
	require.NoError(t, err)
	for range 10 {
		require.NoError(t, p(t.Context()))
	}
	_, err = health.Progress[int](nil, 0)
	require.EqualError(t, err, "there is nothing to read\n0 runs without progress are less than 1")
}
