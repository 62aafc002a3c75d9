package journal

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/internal/nesting"
)

// MaxSize is the most bytes that an encoded event may have.
const MaxSize = 256 << 10

const (
	specVersion = "1.0"
	typePrefix  = "leadership."
	typeSuffix  = ".v1"
)

// envelope is an event as it is written, with its data as a [Data] or as text.
type envelope[D any] struct {
	SpecVersion string         `json:"specversion"`
	ID          string         `json:"id"`
	Source      string         `json:"source"`
	Type        string         `json:"type"`
	Subject     string         `json:"subject"`
	Time        time.Time      `json:"time,omitzero"`
	Data        D              `json:"data"`
	Extensions  jsontext.Value `json:",embed"`
}

func kindOf(typ string) (kind string, ok bool) {
	if kind, ok = strings.CutPrefix(typ, typePrefix); !ok {
		return "", false
	}
	return strings.CutSuffix(kind, typeSuffix)
}

// Encode is the event as one CloudEvent in JSON structured mode, valid or not. The same event always gives the same
// bytes. It fails, with an error that wraps [ErrInvalid] and names the member, for what JSON can't hold: text that is
// not UTF-8, a time past the year 9999, unknown members that repeat known ones.
func (e *Event) Encode() ([]byte, error) {
	if e.Data == nil {
		return nil, &FieldError{"data", "is missing"}
	}
	w := envelope[Data]{
		SpecVersion: specVersion, ID: e.ID, Source: e.Source, Type: typePrefix + e.Data.Kind() + typeSuffix,
		Subject: e.Group, Time: e.Time.UTC(), Data: e.Data, Extensions: e.Extensions,
	}
	if e.Component != "" {
		w.Subject += "/" + e.Component
	}
	text, err := json.Marshal(&w, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode a %s: %w", e.Data.Kind(), explain("", err))
	}
	return text, nil
}

// Subject is where the event is stored.
func (e *Event) Subject() string { return Subject(e.Group, e.Component, e.Data.Kind()) }

// MessageID is what a repeated delivery of the same event is recognized by.
func (e *Event) MessageID() string { return e.Source + "|" + e.ID }

// Decode reads a CloudEvent and checks it as [Event.Validate] does. Members that v1 does not know are kept.
//
// Every error wraps [ErrInvalid] and names the member that is wrong. The event then holds what could be read.
func Decode(text []byte) (Event, error) {
	if len(text) > MaxSize {
		return Event{}, &FieldError{"event", fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), MaxSize)}
	}
	if nesting.TooDeep(text) {
		return Event{}, &FieldError{"event", fmt.Sprintf("nests deeper than %d levels", nesting.Max)}
	}
	if e, ok := decodeCanonical(text); ok {
		return e, e.Validate()
	}
	var w envelope[jsontext.Value]
	err := json.Unmarshal(text, &w)
	e := Event{ID: w.ID, Source: w.Source, Time: w.Time.UTC(), Extensions: w.Extensions}
	var parted bool
	e.Group, e.Component, parted = strings.Cut(w.Subject, "/")
	if err != nil {
		return e, explain("", err)
	}
	if w.SpecVersion != specVersion {
		return e, &FieldError{"specversion", "is " + quote(w.SpecVersion) + "; this is a CloudEvents " + specVersion + " journal"}
	}
	kind, ok := kindOf(w.Type)
	if !ok {
		return e, &FieldError{"type", "is " + quote(w.Type) + ", which is not of the form leadership.<kind>.v1"}
	}
	if e.Data, err = DecodeData(kind, w.Data); err != nil {
		return e, err
	}
	if parted && e.Component == "" {
		return e, &FieldError{"subject", "has nothing after the /; it is <group>/<component>, or <group> alone"}
	}
	return e, e.Validate()
}

// DecodeData reads the data object of one kind; with json.RejectUnknownMembers(true) a member that the kind does not
// have is an error that names the nearest one it has, else it is kept. The result is not yet validated.
//
// Every error wraps [ErrInvalid] and names the member that is wrong.
func DecodeData(kind string, text []byte, opts ...json.Options) (Data, error) {
	data := newData(kind)
	if data == nil {
		return nil, &FieldError{"type", quote(kind) + " is no kind of event" + nearest.Hint(kind, Kinds())}
	}
	if len(text) == 0 {
		return nil, &FieldError{"data", "is missing"}
	}
	if v := jsontext.Value(text); v.Kind() != jsontext.KindBeginObject && v.IsValid() {
		return nil, &FieldError{"data", "is " + given(v.Kind()) + " where an object is wanted"}
	}
	if err := json.Unmarshal(text, data, opts...); err != nil {
		return nil, explain("data", err)
	}
	if strict, ok := json.GetOption(json.JoinOptions(opts...), json.RejectUnknownMembers); ok && strict {
		return data, refuseUnknown("data", data)
	}
	return data, nil
}
