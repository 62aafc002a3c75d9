package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leadership-journal/journald/internal/records"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Log is the journal, read at single places too.
type Log interface {
	journal.Log

	// Read is up to limit records from a sequence on, as the log's leader has them.
	Read(ctx context.Context, from uint64, limit int) ([]journal.Record, error)
}

// Reader finds what is stored on some subjects.
type Reader interface {
	// Each hands over the records that are stored now, in order, until yield says that it has enough.
	Each(ctx context.Context, q records.Query, yield func(*journal.Record) bool) error
}

// Options are what a [Server] is made of.
type Options struct {
	Log       Log
	Reader    Reader
	Projector *projector.Projector
	Alive     Alive
	Metrics   *Metrics
	Gatherer  prometheus.Gatherer                 // what /metrics shows
	Size      func(context.Context) (Size, error) // of the log, by its leader; asked every second
	Reload    func(context.Context) error         // reads the configuration again; nil: there is none to read
	Logger    *slog.Logger

	// Durability says whether it is known that what is acknowledged is on disk, and how.
	Durability func() (verified bool, detail string)
}

func (o *Options) validate() error {
	switch {
	case o.Log == nil, o.Reader == nil, o.Projector == nil, o.Alive == nil, o.Size == nil, o.Durability == nil:
		return errors.New("server: a log, a reader, a projector, a bucket of liveness keys, a size and a durability are needed")
	case o.Metrics == nil, o.Gatherer == nil, o.Logger == nil:
		return errors.New("server: metrics, a gatherer and a logger are needed")
	}
	return nil
}

// Server is the HTTP side of a journald.
type Server struct {
	opts    Options
	log     *slog.Logger
	now     func() time.Time
	began   time.Time
	sampler *sampler
	groups  *groupGate
	handler http.Handler
	page    *page
	writing time.Duration // how long an answer may take that neither waits nor streams
	catchUp time.Duration // how long the fold may take to reach what a candidate was told elsewhere

	streams   context.Context // ends what would never end by itself
	endStream context.CancelFunc
	watchers  chan struct{} // one token for each stream of records under way
	followers chan struct{} // one token for each stream of a candidate's standing
	hub       *hub
	diffs     chan struct{} // one token for each comparison under way
}

// How many streams may be under way:
const (
	mostWatchers  = 1000  // of records
	mostFollowers = 20000 // of where a candidate stands
)

// New checks the options; [Server.Serve] does the work.
func New(ctx context.Context, opts Options) (*Server, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		opts: opts, log: opts.Logger, now: time.Now, began: time.Now(), sampler: newSampler(opts.Size),
		watchers: make(chan struct{}, mostWatchers), diffs: make(chan struct{}, mostDiffs), writing: writeTimeout,
		followers: make(chan struct{}, mostFollowers), hub: newHub(), catchUp: catchUp,
	}
	opts.Projector.Tap(s.hub.folded)
	s.groups = newGroupGate(opts.Projector)
	s.streams, s.endStream = context.WithCancel(ctx)
	opts.Metrics.attach(opts.Projector, s.sampler)
	page, err := newPage()
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.page = page
	s.handler = s.wrap(s.mux())
	return s, nil
}

// Handler answers requests. Who uses it without [Server.Serve] gets no samples of the log's size.
func (s *Server) Handler() http.Handler { return s.handler }

const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 30 * time.Second
	writeTimeout    = 30 * time.Second // but for what waits or streams, which sets its own
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 10 * time.Second
)

// Serve answers on a listener until ctx ends, then lets requests under way finish within 10 s. It owns the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	hs := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: s.writing,
		IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	hs.RegisterOnShutdown(s.endStream)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	helpers.Go(func() { s.sampler.run(ctx) })
	failed := make(chan error, 1)
	helpers.Go(func() { failed <- hs.Serve(listener) })
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	if err := hs.Shutdown(bounded); err != nil {
		return errors.Join(fmt.Errorf("shut HTTP down: %w", err), hs.Close())
	}
	return nil
}

// wrap puts around every request what holds for all of them.
func (s *Server) wrap(h http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(http.StatusForbidden, "cross-origin", "a browser sent this on behalf of another site").write(w)
	}))
	return s.recover(origin.Handler(h))
}

// recover answers for a bug of ours, and keeps the others running.
func (s *Server) recover(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			bug := recover()
			if err, ok := bug.(error); bug == nil || ok && errors.Is(err, http.ErrAbortHandler) {
				return
			}
			s.log.ErrorContext(r.Context(), "a request hit a bug", "method", r.Method, "path", r.URL.Path, "panic", bug)
			refuse(http.StatusInternalServerError, "bug", "this is a bug of journald's; its log says more").write(w)
		}()
		h.ServeHTTP(w, r)
	})
}
