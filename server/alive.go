package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/journal"
)

// Alive keeps the liveness keys of candidates. [alive.Bucket] is one.
type Alive interface {
	// Renew writes a key on condition of its revision. The error is a [*alive.Conflict] where it has another one, and wraps
	// [alive.ErrUnknownOutcome] where it may have been written.
	Renew(ctx context.Context, key alive.Key, beat alive.Heartbeat, revision uint64) (uint64, error)
}

const (
	maxHeartbeat = 4 << 10 // bytes of a body
	longestLease = 24 * time.Hour
)

// putAlive renews a candidate's liveness key. It leaves no trace in the journal, and none in the log.
func (s *Server) putAlive(w http.ResponseWriter, r *http.Request) error {
	in, err := readHeartbeat(w, r)
	if err != nil {
		return err
	}
	key := alive.Key{Group: r.PathValue("group"), Candidate: r.PathValue("candidate")}
	if err := checkHeartbeat(key, in); err != nil {
		return err
	}
	beat := alive.Heartbeat{Incarnation: in.Incarnation, Lease: in.Lease, Run: in.Run}
	revision, err := s.opts.Alive.Renew(r.Context(), key, beat, in.Revision)
	if err != nil {
		return unrenewed(err)
	}
	answer(w, http.StatusOK, &api.Renewed{Revision: revision})
	return nil
}

func readHeartbeat(w http.ResponseWriter, r *http.Request) (*api.Heartbeat, error) {
	if form, err := formOf(r.Header.Get("Content-Type")); err != nil || form != formAuto {
		return nil, refuse(http.StatusUnsupportedMediaType, "media-type", "the body is not said to be JSON; send application/json, in UTF-8")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHeartbeat))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, refuse(http.StatusRequestEntityTooLarge, "too-large", "the body has more than 4 KiB; a heartbeat is small")
	}
	if err != nil {
		return nil, unread(err)
	}
	var in api.Heartbeat
	if err := json.Unmarshal(text, &in, json.RejectUnknownMembers(true)); err != nil {
		return nil, wrongHeartbeat(misread(err, reflect.TypeFor[api.Heartbeat]()))
	}
	return &in, nil
}

// misread says which member of a body can't be read into a type, and why.
func misread(err error, into reflect.Type) *journal.FieldError {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return &journal.FieldError{Field: "body", Problem: notJSON(err)}
	}
	field := strings.TrimPrefix(string(semantic.JSONPointer), "/")
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return &journal.FieldError{Field: field, Problem: "is not known here" + nearest.Hint(field, members(into))}
	case field == "":
		return &journal.FieldError{Field: "body", Problem: fmt.Sprintf("is a JSON %s where an object is wanted", semantic.JSONKind)}
	case semantic.JSONKind == '"' && semantic.Err != nil:
		return &journal.FieldError{Field: field, Problem: semantic.Err.Error()}
	}
	return &journal.FieldError{Field: field, Problem: fmt.Sprintf("is a JSON %s, which does not go there", semantic.JSONKind)}
}

// members are the names of a struct's fields in JSON.
func members(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// checkHeartbeat says everything that is wrong with what was read. Names are as events have them.
func checkHeartbeat(key alive.Key, in *api.Heartbeat) error {
	event := journal.Event{
		ID: "alive", Source: "service/http", Group: key.Group, Data: &journal.Leave{Candidate: key.Candidate, Incarnation: in.Incarnation},
	}
	err := flat(event.Validate())
	if lease := time.Duration(in.Lease); lease < 0 || lease > longestLease {
		err = errors.Join(err, &journal.FieldError{Field: "lease", Problem: fmt.Sprintf("%s is not between 0s and %s", in.Lease, longestLease)})
	}
	if err != nil {
		return wrongHeartbeat(err)
	}
	return nil
}

func wrongHeartbeat(err error) *refusal {
	r := invalid(indexed{-1, err})
	r.code, r.Type = "invalid-heartbeat", api.ProblemPrefix+"invalid-heartbeat"
	return r
}

// unrenewed says why a key was not renewed. Nothing of it is logged: there is one of these for each heartbeat, and what is
// wrong with the bucket is told where that is watched.
func unrenewed(err error) *refusal {
	if c, ok := errors.AsType[*alive.Conflict](err); ok {
		r := refuse(http.StatusConflict, "alive-conflict", c.Error())
		r.Found = c.Found
		return r
	}
	detail := "the liveness keys can't be reached; nothing was written; try again"
	if errors.Is(err, alive.ErrUnknownOutcome) {
		detail = "the key may have been renewed or not: renew it again with the same revision, and if it was, the conflict shows that"
	}
	r := refuse(http.StatusServiceUnavailable, "unavailable", detail)
	r.retryAfter, r.cause = time.Second, err
	return r
}
