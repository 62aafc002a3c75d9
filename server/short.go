package server

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/leadership-journal/journald/journal"
)

// short is an event in the short form: the members of its data beside what says what it is about. The others are
// filled in; id and source may be given, so that a repeated request is recognized.
type short struct {
	Kind      string         `json:"kind"`
	Group     string         `json:"group"`
	Component string         `json:"component"`
	ID        string         `json:"id"`
	Source    string         `json:"source"`
	Data      jsontext.Value `json:",embed"`
}

func decodeShort(text []byte, now time.Time) (journal.Event, error) {
	var s short
	if len(text) > journal.MaxSize {
		return journal.Event{}, &journal.FieldError{
			Field: "event", Problem: fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), journal.MaxSize)}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return journal.Event{}, unreadable(err)
	}
	if s.Kind == "" {
		return journal.Event{}, &journal.FieldError{Field: "kind", Problem: "is missing; it is one of " + list(journal.Kinds()) +
			" (or send a CloudEvent, which has a specversion)"}
	}
	if len(s.Data) == 0 {
		s.Data = jsontext.Value("{}")
	}
	data, err := journal.DecodeData(s.Kind, s.Data, json.RejectUnknownMembers(true))
	if err != nil {
		return journal.Event{}, flat(err)
	}
	event := journal.Event{ID: s.ID, Source: s.Source, Group: s.Group, Component: s.Component, Time: now.UTC(), Data: data}
	if err := fill(&event); err != nil {
		return event, err
	}
	return event, flat(event.Validate())
}

// unreadable says what is wrong with the members that every event has.
func unreadable(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer != "" {
		return &journal.FieldError{Field: strings.TrimPrefix(string(semantic.JSONPointer), "/"),
			Problem: fmt.Sprintf("is a JSON %s where a text is wanted", semantic.JSONKind)}
	}
	if errors.As(err, &semantic) {
		return &journal.FieldError{Field: "event", Problem: fmt.Sprintf("is a JSON %s where an object is wanted", semantic.JSONKind)}
	}
	return &journal.FieldError{Field: "event", Problem: notJSON(err)}
}

// flat names fields as the short form has them: those of the data stand beside the others.
func flat(err error) error {
	if err == nil {
		return nil
	}
	var all []error
	for _, one := range flatten(err) {
		field, ok := errors.AsType[*journal.FieldError](one)
		if !ok {
			all = append(all, one)
			continue
		}
		f := *field
		switch name, inData := strings.CutPrefix(f.Field, "data."); {
		case inData:
			f.Field = name
		case f.Field == "type":
			f.Field = "kind"
		case f.Field == "subject" && strings.Contains(f.Problem, "component"):
			f.Field = "component"
		case f.Field == "subject":
			f.Field = "group"
		}
		all = append(all, &f)
	}
	return errors.Join(all...)
}

// fill gives an event the id and the source that it came without.
func fill(e *journal.Event) error {
	if e.Source == "" {
		e.Source = sourceOf(e.Data)
	}
	if e.ID != "" {
		return nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make an id: %w", err)
	}
	e.ID = id.String()
	return nil
}

// sourceOf is who says so, as far as the data tells.
func sourceOf(data journal.Data) string {
	if _, ok := data.(*journal.Watch); ok {
		return "observer/http"
	}
	return cmp.Or(journal.SourceOf(data), "service/http")
}
