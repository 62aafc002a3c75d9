package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
)

// refusal is an error that is meant for whoever asked.
type refusal struct {
	api.Problem
	code       string
	retryAfter time.Duration
	cause      error
}

func (r *refusal) Error() string { return r.code + ": " + r.Detail }

func (r *refusal) Unwrap() error { return r.cause }

func refuse(status int, code, detail string) *refusal {
	return &refusal{code: code, Problem: api.Problem{
		Type: api.ProblemPrefix + code, Title: http.StatusText(status), Status: status, Detail: detail,
	}}
}

// badQuery says that a parameter can't be understood.
func badQuery(name, problem string) *refusal {
	r := refuse(http.StatusBadRequest, "bad-query", "the query parameter "+name+" "+problem)
	r.Errors = []api.FieldError{{Field: name, Problem: problem}}
	return r
}

// invalid says what is wrong with events, index being the place in a batch or -1.
func invalid(errs ...indexed) *refusal {
	r := refuse(http.StatusBadRequest, "invalid-event", "")
	for _, e := range errs {
		for _, one := range flatten(e.err) {
			f := api.FieldError{Field: "event", Problem: one.Error()}
			if field, ok := errors.AsType[*journal.FieldError](one); ok {
				f.Field, f.Problem = field.Field, field.Problem
			}
			if e.index >= 0 {
				f.Index = &e.index
			}
			r.Errors = append(r.Errors, f)
		}
	}
	if len(r.Errors) > mostErrors {
		r.Errors = r.Errors[:mostErrors]
	}
	if first := r.Errors[0]; first.Index != nil {
		r.Detail = "nothing was stored; event " + strconv.Itoa(*first.Index) + ": " + first.Field + ": " + first.Problem
	} else {
		r.Detail = first.Field + ": " + first.Problem
	}
	return r
}

// mostErrors bounds an answer about a large batch.
const mostErrors = 20

type indexed struct {
	index int
	err   error
}

// flatten lists what was joined.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}

// explain turns any error into a refusal. What was not made for users is logged, not shown.
func explain(ctx context.Context, logger *slog.Logger, err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refuse(http.StatusRequestEntityTooLarge, "too-large",
			"the body has more than "+strconv.Itoa(maxBody>>20)+" MiB; nothing was stored; send it in parts")
	}
	switch {
	case errors.Is(err, journal.ErrInvalid):
		return invalid(indexed{-1, err})
	case errors.Is(err, journal.ErrFull):
		return refuse(http.StatusInsufficientStorage, "journal-full", "the journal takes no more; raise its limit")
	case errors.Is(err, journal.ErrHole):
		logger.ErrorContext(ctx, "the journal has a hole", "error", err)
		return refuse(http.StatusInternalServerError, "journal-hole", err.Error())
	case ctx.Err() != nil:
		return refuse(http.StatusGatewayTimeout, "timeout", "the request ended before its answer was known; "+again)
	}
	logger.ErrorContext(ctx, "a request failed", "error", err)
	r := refuse(http.StatusServiceUnavailable, "unavailable", "the journal can't be reached; "+again)
	r.retryAfter = time.Second
	return r
}

const again = "events may or may not be stored: send them again with the same ids"

func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	if r.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(r.retryAfter.Seconds()+0.999)))
	}
	send(w, r.Status, &r.Problem)
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	send(w, status, body)
}

func send(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)) // what others wrote is anything
	if err != nil {
		http.Error(w, "this answer can't be written as JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // whoever asked may be gone
}

// list is words for a sentence.
func list(words []string) string { return strings.Join(words, ", ") }
