package journal

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/policy"
)

// explain turns an error of the JSON package into one that names the member, as seen from the event.
func explain(at string, err error) error {
	if field, ok := errors.AsType[*FieldError](err); ok {
		return &FieldError{join(at, field.Field), field.Problem}
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		problem := fmt.Sprintf("is not JSON: %s at byte %d", syntactic.Err, syntactic.ByteOffset)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			problem = "stands there twice"
		}
		return &FieldError{member(at, syntactic.JSONPointer), problem}
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		return &FieldError{member(at, semantic.JSONPointer), mismatch(semantic)}
	}
	return &FieldError{member(at, ""), "is not JSON: " + err.Error()}
}

// mismatch says what is wrong with a value of its own: what its type says of it where it is of the right JSON type, else
// both types.
func mismatch(e *json.SemanticError) string {
	if e.Err != nil && e.GoType != nil && e.GoType.Kind() != reflect.Uint64 && e.GoType.Kind() != reflect.Int {
		text := e.GoType == reflect.TypeFor[policy.Duration]() || e.GoType == reflect.TypeFor[time.Time]()
		if !text || e.JSONKind == jsontext.KindString {
			return clip(e.Err.Error())
		}
	}
	what := given(e.JSONKind)
	if e.JSONKind == jsontext.KindNumber && len(e.JSONValue) > 0 {
		what = "the number " + clip(string(e.JSONValue))
	}
	return "is " + what + " where " + wanted(e.GoType) + " is wanted"
}

func given(k jsontext.Kind) string {
	switch k {
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindString, jsontext.KindNumber:
		return "a " + k.String()
	}
	return k.String()
}

func wanted(t reflect.Type) string {
	switch {
	case t == nil:
		return "another type"
	case t == reflect.TypeFor[policy.Duration]():
		return "a duration such as \"30s\""
	case t == reflect.TypeFor[time.Time]():
		return "an RFC 3339 time"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number from 0"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// member is the name of what a pointer points at: data.targets[0].name.
func member(at string, pointer jsontext.Pointer) string {
	for token := range pointer.Tokens() {
		if len(at) > clipped {
			return at + "…"
		}
		if token != "" && strings.Trim(token, "0123456789") == "" {
			at += "[" + clip(token) + "]"
		} else {
			at = join(at, clip(token))
		}
	}
	if at == "" {
		return "event"
	}
	return at
}

func join(at, name string) string {
	if at == "" || name == "" {
		return at + name
	}
	return at + "." + name
}

// quote is a publisher's text as a message shows it.
func quote(s string) string { return fmt.Sprintf("%q", clip(s)) }

const clipped = 128

// clip keeps messages short, whatever was sent.
func clip(s string) string { return cutAt(s, clipped) }

func cutAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
