package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/journal"
)

const (
	maxBody   = 16 << 20 // what the journal takes at once
	maxEvents = 1000     // the same
)

// input is what a request brought.
type input struct {
	events []journal.Event
	batch  bool // it is answered by a list, even for one event
	size   int  // bytes of the events
}

// forms of a body.
const (
	formAuto     = iota // a JSON value, or one a line
	formEnvelope        // one CloudEvent
	formArray           // a JSON array
	formLines           // JSON lines
)

func mediaTypes() map[string]int {
	return map[string]int{
		"":                                   formAuto,
		"application/json":                   formAuto,
		"application/x-www-form-urlencoded":  formAuto, // what curl -d says of whatever it sends
		"application/cloudevents+json":       formEnvelope,
		"application/cloudevents-batch+json": formArray,
		"application/x-ndjson":               formLines,
		"application/jsonl":                  formLines,
	}
}

// readInput reads and checks the events of a request.
func readInput(w http.ResponseWriter, r *http.Request, now time.Time) (*input, error) {
	form, err := formOf(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	texts, batch, err := split(body, form)
	if err != nil {
		return nil, err
	}
	return decodeAll(texts, batch, form, now)
}

func formOf(contentType string) (int, error) {
	if contentType == "" || contentType == "application/json" {
		return formAuto, nil
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	form, known := mediaTypes()[media]
	charset := strings.ToLower(parameters["charset"])
	if err != nil || !known || charset != "" && charset != "utf-8" {
		return 0, refuse(http.StatusUnsupportedMediaType, "media-type", fmt.Sprintf("the body is said to be %q; send "+
			"application/json, application/cloudevents+json, application/cloudevents-batch+json or application/x-ndjson, in UTF-8", contentType))
	}
	return form, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	if n := r.ContentLength; n > 0 && n <= maxBody {
		body := make([]byte, n)
		if _, err := io.ReadFull(limited, body); err != nil {
			return nil, unread(err)
		}
		return body, nil
	}
	body, err := io.ReadAll(limited)
	if err != nil {
		return nil, unread(err)
	}
	return body, nil
}

func unread(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	r := refuse(http.StatusBadRequest, "unread", "the body ended early; nothing was stored")
	r.cause = err
	return r
}

// split finds the events in a body.
func split(body []byte, form int) (texts [][]byte, batch bool, err error) {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return nil, false, refuse(http.StatusBadRequest, "empty", "the body is empty; send an event")
	case form == formArray || form == formAuto && body[0] == '[':
		texts, err = splitArray(body)
	case form == formLines || form == formAuto && lines(body):
		texts, err = splitLines(body)
	default:
		return [][]byte{body}, false, nil
	}
	if err == nil && len(texts) == 0 {
		err = refuse(http.StatusBadRequest, "empty", "there is no event in the body")
	}
	return texts, true, err
}

// lines says whether there is something after the first JSON value.
func lines(body []byte) bool {
	if bytes.IndexByte(body, '\n') < 0 {
		return false
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	return d.SkipValue() == nil && d.InputOffset() < int64(len(body))
}

func splitArray(body []byte) ([][]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '[' {
		return nil, invalid(indexed{-1, &journal.FieldError{Field: "body", Problem: "is not a JSON array"}})
	}
	var texts [][]byte
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, invalid(indexed{len(texts), &journal.FieldError{Field: "event", Problem: notJSON(err)}})
		}
		if len(texts) == maxEvents {
			return nil, tooMany()
		}
		texts = append(texts, bytes.Clone(value))
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, invalid(indexed{-1, &journal.FieldError{Field: "body", Problem: notJSON(err)}})
	}
	if len(bytes.TrimSpace(body[d.InputOffset():])) > 0 {
		return nil, invalid(indexed{-1, &journal.FieldError{Field: "body", Problem: "goes on after the array"}})
	}
	return texts, nil
}

func notJSON(err error) string {
	return "is not JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")
}

func splitLines(body []byte) ([][]byte, error) {
	var texts [][]byte
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(texts) == maxEvents {
			return nil, tooMany()
		}
		texts = append(texts, line)
	}
	return texts, nil
}

func tooMany() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, "too-many",
		fmt.Sprintf("the batch has more than %d events; nothing was stored; send it in parts", maxEvents))
}

func decodeAll(texts [][]byte, batch bool, form int, now time.Time) (*input, error) {
	in := &input{batch: batch, events: make([]journal.Event, len(texts))}
	var wrong []indexed
	for i, text := range texts {
		event, err := decode(text, form == formEnvelope, now)
		if refusal := allowed(&event); refusal != nil {
			if batch {
				refusal.Detail = fmt.Sprintf("nothing was stored; event %d: %s", i, refusal.Detail)
			}
			return nil, refusal
		}
		if err != nil {
			index := i
			if !batch {
				index = -1
			}
			wrong = append(wrong, indexed{index, err})
		}
		in.events[i] = event
		in.size += len(text)
	}
	if len(wrong) > 0 {
		return nil, invalid(wrong...)
	}
	return in, nil
}

// decode reads one event, a CloudEvent or the short form.
func decode(text []byte, envelope bool, now time.Time) (journal.Event, error) {
	if !envelope && !bytes.Contains(text, []byte(`"specversion"`)) {
		return decodeShort(text, now)
	}
	event, err := journal.Decode(text)
	if err != nil && !envelope && !topLevel(text, "specversion") {
		return decodeShort(text, now)
	}
	return event, err
}

// topLevel says whether a JSON object has a member of that name itself.
func topLevel(text []byte, name string) bool {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return false
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return false
		}
		if token.String() == name {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}

// allowed refuses what only the projector says.
func allowed(e *journal.Event) *refusal {
	switch d := e.Data.(type) {
	case *journal.Takeover, *journal.Push, *journal.Yield, *journal.Hold, *journal.Stale, *journal.Alert, *journal.Clear, *journal.Checkpoint:
		return refuse(http.StatusForbidden, "projector-only", "a "+d.Kind()+" is the projector's own word: it follows from what others say")
	}
	if strings.HasPrefix(e.Source, "projector/") {
		return refuse(http.StatusForbidden, "projector-only", "the source "+e.Source+" is the projector's; "+
			"name yourself, as in candidate/jm-1, observer/k8s or operator/alice")
	}
	return nil
}
