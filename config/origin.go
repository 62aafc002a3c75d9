package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// The kinds of origin that a value can have.
const (
	FromDefault     = "default"
	FromFile        = "file"
	FromEnvironment = "environment"
	FromFlag        = "flag"
)

// Origin says where a value came from.
type Origin struct {
	Kind   string
	Detail string // the file and line, the variable, the flag
}

// String is the kind with its detail.
func (o Origin) String() string {
	if o.Detail == "" {
		return o.Kind
	}
	return o.Kind + " " + o.Detail
}

// Value is one effective value.
type Value struct {
	Key    string `json:"key"`
	Value  string `json:"value"` // secrets hidden
	Origin string `json:"origin"`
}

// Values are all effective values in the order of the file.
func (e *Effective) Values() []Value {
	var all []Value
	leaves("", reflect.ValueOf(&e.Config).Elem(), func(key string, v reflect.Value) {
		all = append(all, Value{key, hide(key, show(v)), e.origin(key).String()})
	})
	return all
}

// Needs lists the keys that differ from a configuration in force and take a restart to change.
func (e *Effective) Needs(inForce *Effective) []string {
	old := map[string]string{}
	for _, v := range inForce.Values() {
		old[v.Key] = v.Value
	}
	var keys []string
	for _, v := range e.Values() {
		live := strings.HasPrefix(v.Key, "groups[") || strings.HasPrefix(v.Key, "defaults.") || v.Key == "log.level"
		if !live && old[v.Key] != v.Value {
			keys = append(keys, v.Key)
		}
	}
	return keys
}

// origin is where a key's value came from. What a group's policy leaves out came from the defaults.
func (e *Effective) origin(key string) Origin {
	if o, ok := e.origins[key]; ok {
		return o
	}
	if _, rest, ok := strings.Cut(key, ".policy."); ok && strings.HasPrefix(key, "groups[") {
		o := e.origin("defaults.policy." + rest)
		if o.Kind == FromDefault {
			return o
		}
		return Origin{o.Kind, o.Detail + " (defaults.policy)"}
	}
	return Origin{Kind: FromDefault}
}

// hide takes passwords out of URLs.
func hide(key, value string) string {
	if key != "nats.url" && !strings.HasPrefix(key, "nats.cluster.routes") {
		return value
	}
	parts := strings.Split(value, ",")
	for i, part := range parts {
		scheme, rest, ok := strings.Cut(part, "://")
		if !ok {
			scheme, rest = "", part
		} else {
			scheme += "://"
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			parts[i] = scheme + "***@" + rest[at+1:]
		}
	}
	return strings.Join(parts, ",")
}

// leaves visits every value that has no parts, in order.
func leaves(key string, v reflect.Value, visit func(key string, v reflect.Value)) {
	_, isText := v.Addr().Interface().(encoding.TextUnmarshaler)
	_, isJSON := v.Addr().Interface().(json.Unmarshaler)
	switch {
	case isText || isJSON || v.Kind() != reflect.Struct && v.Kind() != reflect.Slice || v.Type() == reflect.TypeFor[[]string]():
		visit(key, v)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			leaves(fmt.Sprintf("%s[%d]", key, i), v.Index(i), visit)
		}
	default:
		for i, name := range fieldsOf(v.Type()).names {
			leaves(join(key, name), v.Field(i), visit)
		}
	}
}

func show(v reflect.Value) string {
	switch x := v.Addr().Interface().(type) {
	case *[]string:
		return strings.Join(*x, ",")
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		if err == nil {
			return string(text)
		}
	case json.Marshaler:
		text, err := x.MarshalJSON()
		if err == nil {
			return strings.Trim(string(text), `"`)
		}
	}
	return fmt.Sprint(v.Interface())
}

// set gives a value what a variable or a flag says.
func (d *decoder) set(key string, v reflect.Value, text string, from Origin) {
	d.origins[key] = from
	if err := parse(v, text); err != nil {
		d.problems = append(d.problems, &Problem{From: from.Detail, Key: key, Text: err.Error()})
	}
}

func parse(v reflect.Value, text string) error {
	switch x := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return x.UnmarshalText([]byte(text))
	case json.Unmarshaler:
		return x.UnmarshalJSON([]byte(strconv.Quote(text)))
	case *[]string:
		*x = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	case *string:
		*x = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("is %q where true or false is wanted", text)
		}
		*x = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("is %q where a whole number is wanted", text)
		}
		*x = n
	}
	return nil
}
