package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/records"
	"github.com/leadership-journal/journald/journal"
)

const (
	streamBeat     = 15 * time.Second // a comment, so that a dead connection is found
	streamPatience = 20 * time.Second // for one write to a slow reader
)

// watch streams records as server-sent events. The id is the sequence, so that a reader that comes back goes on after
// the last one it got.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r.URL.RawQuery, "group", "component", "kind", "from")
	if err != nil {
		return err
	}
	f, err := filterOf(query)
	if err != nil {
		return err
	}
	from, err := s.watchFrom(r, query.Get("from"))
	if err != nil {
		return err
	}
	leave, err := enter(s.watchers)
	if err != nil {
		return err
	}
	defer leave()
	ctx, stop := mergeDone(r.Context(), s.streams)
	defer stop()
	s.stream(ctx, w, f, from)
	return nil
}

// enter takes one of a bounded number of places.
func enter(places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		refusal := refuse(http.StatusServiceUnavailable, "too-many-watchers", fmt.Sprintf("%d streams are under way", cap(places)))
		refusal.retryAfter = 10 * time.Second
		return nil, refusal
	}
}

// lastEventID is the last id that a reader got of a stream, 0 where it got none.
func lastEventID(r *http.Request) (uint64, error) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		return 0, nil
	}
	last, err := strconv.ParseUint(id, 10, 64)
	if err != nil || last >= 1<<53 {
		return 0, badQuery("Last-Event-ID", "is no sequence")
	}
	return last, nil
}

// watchFrom is where a stream begins: after the last record that the reader got, where it says, or with what comes.
func (s *Server) watchFrom(r *http.Request, from string) (uint64, error) {
	if r.Header.Get("Last-Event-ID") != "" {
		last, err := lastEventID(r)
		return last + 1, err
	}
	w, err := parseWhen("from", from, s.now())
	if err != nil {
		return 0, err
	}
	if !w.time.IsZero() {
		return s.sequenceAt(r.Context(), w.time)
	}
	if w.sequence > 0 {
		return w.sequence, nil
	}
	last, err := s.opts.Log.Last(r.Context())
	return last + 1, err
}

// stream writes until the reader goes, or the server stops.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, f filter, from uint64) {
	out := newEventStream(w)
	if out.say("retry: 2000\n\n") != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan []journal.Record)
	failed, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		failed <- s.feed(ctx, from, batches)
	}()
	defer func() { cancel(); <-ended }()
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	for {
		select {
		case batch := <-batches:
			if s.streamBatch(out, f, batch) != nil {
				return
			}
		case <-beat.C:
			if out.say(": still here\n\n") != nil {
				return
			}
		case err := <-failed:
			s.endWith(ctx, out, err)
			return
		}
	}
}

// feed follows the log, a moment behind the fold, so that every record comes with its verdict.
func (s *Server) feed(ctx context.Context, from uint64, batches chan<- []journal.Record) error {
	return s.opts.Log.Follow(ctx, from, func(batch []journal.Record) error {
		if err := s.opts.Projector.Wait(ctx, batch[len(batch)-1].Sequence); err != nil {
			return err
		}
		select {
		case batches <- batch:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func (s *Server) streamBatch(out *eventStream, f filter, batch []journal.Record) error {
	for i := range batch {
		if !f.matches(&batch[i]) {
			continue
		}
		record := s.show(&batch[i])
		text, err := json.Marshal(&record, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("encode record %d: %w", record.Sequence, err)
		}
		if err := out.write("id: " + strconv.FormatUint(record.Sequence, 10) + "\ndata: " + string(text) + "\n\n"); err != nil {
			return err
		}
	}
	return out.flush()
}

// endWith tells the reader why there will be no more, where it is not for the reader to know already.
func (s *Server) endWith(ctx context.Context, out *eventStream, err error) {
	if ctx.Err() != nil {
		return
	}
	problem := explain(ctx, s.log, err)
	text, err := json.Marshal(&problem.Problem, json.Deterministic(true))
	if err == nil {
		_ = out.say("event: problem\ndata: " + string(text) + "\n\n") // the reader may be gone
	}
}

// eventStream writes to a reader that may be slow, and gives up on one that stands still.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// newEventStream begins the answer.
func newEventStream(w http.ResponseWriter) *eventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &eventStream{w: w, control: http.NewResponseController(w)}
}

func (e *eventStream) write(text string) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(streamPatience)) // not every connection has deadlines
	_, err := e.w.Write([]byte(text))
	return err
}

// say writes something at once.
func (e *eventStream) say(text string) error {
	if err := e.write(text); err != nil {
		return err
	}
	return e.flush()
}

func (e *eventStream) flush() error { return e.control.Flush() }

// sequenceAt is the first sequence at or after a moment, or the one to come.
func (s *Server) sequenceAt(ctx context.Context, at time.Time) (uint64, error) {
	sequence := uint64(0)
	err := s.opts.Reader.Each(ctx, records.Query{Since: at}, func(r *journal.Record) bool {
		sequence = r.Sequence
		return false
	})
	if err != nil || sequence > 0 {
		return sequence, err
	}
	last, err := s.opts.Log.Last(ctx)
	return last + 1, err
}
