package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Fault says which requests fail, and how: with a Status, with a broken connection (Status 0), or by hanging.
type Fault struct {
	// Match selects requests; nil selects all, watches too. It must not read the body.
	Match func(*http.Request) bool
	// Every lets one in that many of the selected requests fail, the last of each run; 0 and 1 mean all.
	Every int
	// Applied sends the request to the API server, waits for its answer and discards it: what was asked has
	// been done, or refused. Otherwise the API server never hears of the request.
	Applied bool
	// Status is the code to answer; 0 breaks the connection, so that the client can't know the outcome.
	Status int
	// RetryAfter, if not 0, is the Retry-After header, rounded up to a second. client-go then repeats the
	// request itself, up to ten times, unless told not to.
	RetryAfter time.Duration
	// Hang answers nothing until the client gives up or the proxy stops. Status is not looked at.
	Hang bool
}

// Writes matches the requests that change something.
func Writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// HTTPFaults is a proxy before an API server. It passes everything, watches as they stream, save what it was
// told to fail. Its methods are safe for concurrent use.
type HTTPFaults struct {
	config *rest.Config
	proxy  *httputil.ReverseProxy
	server *http.Server
	served sync.WaitGroup
	stop   context.CancelFunc

	mu     sync.Mutex
	rules  []*rule
	faults int
}

type rule struct {
	Fault
	seen int
}

type faultKey struct{}

var (
	errDiscarded = errors.New("the true answer was discarded")
	errStopped   = errors.New("the proxy stopped")
)

const proxyShutdown = 5 * time.Second

// StartHTTPFaults starts a proxy before the API server of config, until Close is called. It speaks to the API
// server with the credentials of config, and plain HTTP without any to its clients.
func StartHTTPFaults(ctx context.Context, config *rest.Config) (*HTTPFaults, error) {
	f, err := startHTTPFaults(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("starting an HTTP proxy to %s: %w", config.Host, err)
	}
	return f, nil
}

func startHTTPFaults(ctx context.Context, config *rest.Config) (*HTTPFaults, error) {
	upstream, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return nil, err
	}
	f := &HTTPFaults{config: plainConfig(config, listener.Addr())}
	silent := log.New(io.Discard, "", 0)
	f.proxy = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:      transport,
		ModifyResponse: discard,
		ErrorHandler:   f.fail,
		ErrorLog:       silent,
	}
	ctx, f.stop = context.WithCancel(ctx)
	f.server = &http.Server{
		Handler:     http.HandlerFunc(f.serve),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    silent,
	}
	f.served.Go(func() { _ = f.server.Serve(listener) })
	return f, nil
}

// plainConfig is config for a client of the proxy at addr.
func plainConfig(config *rest.Config, addr net.Addr) *rest.Config {
	return &rest.Config{
		Host:          "http://" + addr.String(),
		ContentConfig: config.ContentConfig,
		UserAgent:     config.UserAgent,
		QPS:           config.QPS,
		Burst:         config.Burst,
		Timeout:       config.Timeout,
	}
}

// NewHTTPFaults is StartHTTPFaults until the end of the test.
func NewHTTPFaults(tb testing.TB, config *rest.Config) *HTTPFaults {
	tb.Helper()
	f, err := StartHTTPFaults(context.WithoutCancel(tb.Context()), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	})
	return f
}

// Config returns a configuration whose requests go through the proxy.
func (f *HTTPFaults) Config() *rest.Config { return rest.CopyConfig(f.config) }

// Set replaces the faults by these; none means that every request passes. The first that selects a request
// decides about it. Requests under way are not affected.
func (f *HTTPFaults) Set(faults ...Fault) {
	rules := make([]*rule, len(faults))
	for i, fault := range faults {
		rules[i] = &rule{Fault: fault}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = rules
}

// Count returns how many requests were made to fail since the start, those that hang included.
func (f *HTTPFaults) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

// Close ends all requests and watches and stops the proxy. It may be repeated.
func (f *HTTPFaults) Close() error {
	f.stop()
	ctx, cancel := context.WithTimeoutCause(context.Background(), proxyShutdown, errStopped)
	defer cancel()
	err := f.server.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("stopping the HTTP proxy: %w", errors.Join(err, f.server.Close()))
	}
	f.served.Wait()
	return err
}

func (f *HTTPFaults) serve(w http.ResponseWriter, r *http.Request) {
	fault := f.choose(r)
	switch {
	case fault == nil:
		f.proxy.ServeHTTP(w, r)
	case fault.Applied:
		f.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), faultKey{}, fault)))
	default:
		f.answer(w, r, fault)
	}
}

func (f *HTTPFaults) choose(r *http.Request) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		if rule.Match != nil && !rule.Match(r) {
			continue
		}
		rule.seen++
		if rule.seen%max(rule.Every, 1) == 0 {
			return &rule.Fault
		}
		return nil
	}
	return nil
}

// discard stops the proxy from passing on the answer to a request that is to fail. The API server answers
// after it has stored, so at this point the request has been applied.
func discard(response *http.Response) error {
	if response.Request.Context().Value(faultKey{}) == nil {
		return nil
	}
	return errDiscarded
}

// fail is called by the proxy in place of passing an answer on. What the API server did not answer, by being
// down, is a broken connection, as it would be without a proxy.
func (f *HTTPFaults) fail(w http.ResponseWriter, r *http.Request, err error) {
	fault, _ := r.Context().Value(faultKey{}).(*Fault)
	if fault == nil || !errors.Is(err, errDiscarded) {
		panic(http.ErrAbortHandler)
	}
	f.answer(w, r, fault)
}

// answer gives the false answer in the form of the API server's own.
func (f *HTTPFaults) answer(w http.ResponseWriter, r *http.Request, fault *Fault) {
	f.mu.Lock()
	f.faults++
	f.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body) // until then net/http doesn't notice that the client gives up
	if fault.Hang {
		<-r.Context().Done()
	}
	if fault.Hang || fault.Status == 0 {
		panic(http.ErrAbortHandler) // net/http breaks the connection
	}
	seconds := int((fault.RetryAfter + time.Second - 1) / time.Second)
	if seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.Status)
	status := apierrors.NewGenericServerResponse(fault.Status, strings.ToLower(r.Method), schema.GroupResource{}, "",
		"injected fault", seconds, true).ErrStatus
	status.Kind, status.APIVersion = "Status", "v1"
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}
