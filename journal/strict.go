package journal

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/internal/nearest"
)

// refuseUnknown names the first member that was kept unknown, outermost first, and the nearest one that is known.
func refuseUnknown(at string, data Data) error {
	if d, ok := data.(interface{ written() any }); ok {
		return unknownIn(at, reflect.ValueOf(d.written()))
	}
	return unknownIn(at, reflect.ValueOf(data))
}

func unknownIn(at string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return unknownIn(at, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := unknownIn(fmt.Sprintf("%s[%d]", at, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return unknownInStruct(at, v)
	}
	return nil
}

func unknownInStruct(at string, v reflect.Value) error {
	t := v.Type()
	if t == reflect.TypeFor[extra]() {
		return nil
	}
	if f := v.FieldByName("extra"); f.IsValid() && !f.Field(0).IsNil() {
		name := firstName(f.Field(0).Elem().Bytes())
		return &FieldError{join(at, clip(name)), "is not a member that is known here" + nearest.Hint(name, memberNames(t))}
	}
	for i := range t.NumField() {
		if err := unknownIn(join(at, memberName(t.Field(i))), v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// firstName is the name of the first member of an object that has one.
func firstName(object jsontext.Value) string {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	var name string
	for range 2 { // the brace, the name
		token, err := dec.ReadToken()
		if err != nil {
			return "" // never: the object was put together by the decoder
		}
		name = token.String()
	}
	return name
}

// memberNames are the members of a type's object, those of embedded types included.
func memberNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if name := memberName(f); name != "" {
			names = append(names, name)
		} else if f.Type = pointed(f.Type); f.Anonymous && f.Type.Kind() == reflect.Struct {
			names = append(names, memberNames(f.Type)...)
		}
	}
	return names
}

func pointed(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// memberName is a field's name in JSON, or empty for what is embedded.
func memberName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
