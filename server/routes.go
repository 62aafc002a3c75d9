package server

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// route is one place that can be asked.
type route struct {
	method, path string
	handle       func(http.ResponseWriter, *http.Request) error
}

func (s *Server) routes() []route {
	const component = "/v1/groups/{group}/components/{component}"
	return []route{
		{"POST", "/v1/events", s.postEvents},
		{"GET", "/v1/events", s.getEvents},
		{"GET", "/v1/events/{sequence}", s.getEvent},
		{"GET", "/v1/groups", s.getGroups},
		{"GET", "/v1/groups/{group}", s.getGroup},
		{"PUT", "/v1/groups/{group}/candidates/{candidate}/alive", s.putAlive},
		{"GET", "/v1/groups/{group}/candidates/{candidate}", s.getCandidate},
		{"GET", "/v1/groups/{group}/candidates/{candidate}/watch", s.watchCandidate},
		{"GET", component, s.getComponent},
		{"GET", component + "/leader", s.getLeader},
		{"OPTIONS", component + "/leader", s.leaderOptions},
		{"GET", component + "/history", s.getHistory},
		{"POST", component + "/transfer", s.order("transfer")},
		{"POST", "/v1/groups/{group}/exclude", s.order("exclude")},
		{"POST", "/v1/groups/{group}/include", s.order("include")},
		{"POST", "/v1/groups/{group}/pause", s.order("pause")},
		{"POST", "/v1/groups/{group}/resume", s.order("resume")},
		{"GET", "/v1/diff", s.getDiff},
		{"GET", "/v1/watch", s.watch},
		{"GET", "/livez", s.livez},
		{"GET", "/readyz", s.readyz},
		{"GET", "/metrics", s.metrics},
		{"GET", "/openapi.json", s.openAPI},
		{"POST", "/-/reload", s.reload},
		{"GET", "/assets/{name}", s.asset},
		{"GET", "/{$}", s.index},
	}
}

// mux matches paths segment by segment as they were sent, so that a name may have an escaped slash.
func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range s.routes() {
		mux.Handle(r.method+" "+r.path, s.adapt(r.handle))
		methods[r.path] = append(methods[r.path], r.method)
	}
	for path, known := range methods {
		mux.Handle(path, s.adapt(methodNotAllowed(known)))
	}
	mux.Handle("/", s.adapt(func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "no-route", "there is nothing at this path; /openapi.json lists what there is")
	}))
	return mux
}

func methodNotAllowed(known []string) func(http.ResponseWriter, *http.Request) error {
	allow := strings.Join(known, ", ")
	if strings.Contains(allow, http.MethodGet) {
		allow += ", HEAD"
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return refuse(http.StatusMethodNotAllowed, "method", r.Method+" is not known here; "+allow+" are")
	}
}

// adapt answers with the problem that a handler returned.
func (s *Server) adapt(handle func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			explain(r.Context(), s.log, err).write(w)
		}
	})
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(s.opts.Gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

func (s *Server) reload(w http.ResponseWriter, r *http.Request) error {
	if s.opts.Reload == nil {
		return refuse(http.StatusConflict, "no-file", "this journald runs without a configuration file; there is nothing to read again")
	}
	if err := s.opts.Reload(r.Context()); err != nil {
		refusal := refuse(http.StatusBadRequest, "bad-configuration", "the configuration in force stays: "+err.Error())
		refusal.cause = err
		return refusal
	}
	answer(w, http.StatusOK, map[string]bool{"reloaded": true})
	return nil
}
