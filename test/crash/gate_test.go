package crash_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/testenv"
)

// gate is a way to the API server on which a write can be held back and delivered later, when its sender has long been
// given up, or has given up itself.
type gate struct {
	config *rest.Config
	proxy  *httputil.ReverseProxy

	mu       sync.Mutex
	shut     bool
	held     int
	opened   chan struct{} // closed when what is held is delivered
	statuses []int         // what the API server answered to what was held
}

type heldKey struct{}

func newGate(t *testing.T, config *rest.Config) *gate {
	t.Helper()
	upstream, _, err := rest.DefaultServerUrlFor(config)
	require.NoError(t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	g := &gate{opened: make(chan struct{})}
	g.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: g.answered, ErrorLog: log.New(io.Discard, "", 0),
	}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		g.open()
		server.CloseClientConnections()
		server.Close()
	})
	g.config = &rest.Config{Host: server.URL}
	return g
}

// close holds back every write from here on.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// open delivers what was held, and lets everything pass.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		g.shut = false
		close(g.opened)
		g.opened = make(chan struct{})
	}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	hold, opened := g.shut && testenv.Writes(r), g.opened
	g.mu.Unlock()
	if !hold {
		g.proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	g.mu.Lock()
	g.held++
	g.mu.Unlock()
	<-opened
	r = r.Clone(context.WithValue(context.WithoutCancel(r.Context()), heldKey{}, true))
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.proxy.ServeHTTP(w, r)
}

func (g *gate) answered(r *http.Response) error {
	if r.Request.Context().Value(heldKey{}) != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.statuses = append(g.statuses, r.StatusCode)
	}
	return nil
}

// holding is how many writes were held back so far.
func (g *gate) holding() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// answers are what the API server said to what had been held.
func (g *gate) answers() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.statuses...)
}
