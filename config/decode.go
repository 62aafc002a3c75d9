package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/policy"
)

// decoder puts what a YAML document says into Go values, notes where each was said, and collects what is wrong.
type decoder struct {
	file     string
	example  string // the command that prints a file to begin with
	notYet   func(path string) (sentence string, ok bool)
	origins  map[string]Origin
	problems Problems
	defaults policy.Policy // of the groups
	anchors  map[string]ast.Node
}

func (d *decoder) fail(n ast.Node, key, format string, args ...any) {
	d.problems = append(d.problems, &Problem{From: d.at(n), Key: key, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", d.file, n.GetToken().Position.Line)
}

func (d *decoder) note(n ast.Node, key string) {
	d.origins[key] = Origin{Kind: FromFile, Detail: d.at(n)}
}

// value decodes a node into v, which has its default.
func (d *decoder) value(n ast.Node, key string, v reflect.Value) {
	said := n
	if n = d.resolve(n); n == nil {
		d.fail(said, key, "is an alias of nothing that stands before it")
		return
	}
	if _, ok := n.(*ast.NullNode); ok {
		return // a key with nothing behind it says nothing
	}
	d.note(n, key)
	switch target := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		d.text(n, key, target)
		return
	case json.Unmarshaler:
		d.json(n, key, target)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, key, v)
	case reflect.Slice:
		d.list(n, key, v)
	case reflect.Map:
		d.words(n, key, v)
	default:
		d.scalar(n, key, v)
	}
}

// resolve follows anchors, aliases and tags to what they stand for.
func (d *decoder) resolve(n ast.Node) ast.Node {
	for range 100 {
		switch x := n.(type) {
		case *ast.AnchorNode:
			d.anchors[x.Name.GetToken().Value] = x.Value
			n = x.Value
		case *ast.AliasNode:
			n = d.anchors[x.Value.GetToken().Value]
		case *ast.TagNode:
			n = x.Value
		default:
			return n
		}
	}
	return n
}

func (d *decoder) structure(n ast.Node, key string, v reflect.Value) {
	entries, ok := mapping(n)
	if !ok {
		d.fail(n, key, "is %s where a map is wanted", describe(n))
		return
	}
	fields := fieldsOf(v.Type())
	seen := map[string]bool{}
	for _, e := range entries {
		name := e.Key.GetToken().Value
		path := join(key, name)
		index, known := fields.index[name]
		switch {
		case seen[name]:
			d.fail(e.Key, path, "is said twice")
		case !known:
			d.unknown(e.Key, path, name, fields.names)
		default:
			d.value(e.Value, path, v.Field(index))
		}
		seen[name] = true
	}
}

func (d *decoder) unknown(n ast.Node, path, name string, known []string) {
	if sentence, ok := d.notYet(path); ok {
		d.fail(n, path, "%s", sentence)
		return
	}
	hint := nearest.Hint(name, known)
	if hint == "" {
		hint = "; known here: " + strings.Join(known, ", ")
	}
	d.fail(n, path, "is no key that is known here%s", hint)
}

// notYet says what keys of the contract mean that this version does not have.
func notYet(path string) (string, bool) {
	switch path {
	case "auth", "tls":
		return "is not in this version, which can't tell who is asking: listen on a loopback address, or say insecure: true", true
	case "partitions":
		return "is not in this version, which keeps the journal in one partition; take it out", true
	}
	return "", false
}

func (d *decoder) list(n ast.Node, key string, v reflect.Value) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(n, key, "is %s where a list is wanted", describe(n))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(sequence.Values), len(sequence.Values))
	for i, element := range sequence.Values {
		at := fmt.Sprintf("%s[%d]", key, i)
		if g, ok := list.Index(i).Addr().Interface().(*Group); ok {
			g.Policy = d.defaults
		}
		d.value(element, at, list.Index(i))
	}
	v.Set(list)
}

// words decodes a map of texts, whose keys may be any.
func (d *decoder) words(n ast.Node, key string, v reflect.Value) {
	entries, ok := mapping(n)
	if !ok {
		d.fail(n, key, "is %s where a map is wanted", describe(n))
		return
	}
	words := reflect.MakeMap(v.Type())
	for _, e := range entries {
		name := e.Key.GetToken().Value
		word := reflect.New(v.Type().Elem()).Elem()
		d.value(e.Value, join(key, name), word)
		words.SetMapIndex(reflect.ValueOf(name), word)
	}
	v.Set(words)
}

func (d *decoder) scalar(n ast.Node, key string, v reflect.Value) {
	switch x := n.(type) {
	case *ast.StringNode:
		if v.Kind() == reflect.String {
			v.SetString(x.Value)
			return
		}
	case *ast.LiteralNode:
		if v.Kind() == reflect.String {
			v.SetString(x.Value.Value)
			return
		}
	case *ast.BoolNode:
		if v.Kind() == reflect.Bool {
			v.SetBool(x.Value)
			return
		}
	case *ast.IntegerNode:
		number, ok := integer(x)
		if ok && v.CanInt() {
			v.SetInt(number)
			return
		}
		if ok && v.CanFloat() {
			v.SetFloat(float64(number))
			return
		}
	case *ast.FloatNode:
		if v.CanFloat() {
			v.SetFloat(x.Value)
			return
		}
	}
	d.fail(n, key, "is %s where %s is wanted", describe(n), wanted(v))
}

func integer(n *ast.IntegerNode) (int64, bool) {
	switch x := n.Value.(type) {
	case int64:
		return x, true
	case uint64:
		return int64(x), x <= math.MaxInt64
	}
	return 0, false
}

func (d *decoder) text(n ast.Node, key string, target encoding.TextUnmarshaler) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode:
		if err := target.UnmarshalText([]byte(n.GetToken().Value)); err != nil {
			d.fail(n, key, "%s", err)
		}
	default:
		d.fail(n, key, "is %s where a word is wanted", describe(n))
	}
}

// json decodes a word, or a map of words, by way of JSON.
func (d *decoder) json(n ast.Node, key string, target json.Unmarshaler) {
	var plain any = n.GetToken().Value
	if entries, ok := mapping(n); ok {
		words := map[string]string{}
		for _, e := range entries {
			words[e.Key.GetToken().Value] = d.resolve(e.Value).GetToken().Value
		}
		plain = words
	}
	text, err := json.Marshal(plain)
	if err == nil {
		err = target.UnmarshalJSON(text)
	}
	if err != nil {
		d.fail(n, key, "%s", err)
	}
}

func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch x := n.(type) {
	case *ast.MappingNode:
		return x.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{x}, true
	}
	return nil, false
}

func describe(n ast.Node) string {
	switch x := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a map"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return fmt.Sprintf("the text %q", x.Value)
	}
	return n.GetToken().Value
}

func wanted(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.CanInt():
		return "a whole number"
	case v.CanFloat():
		return "a number"
	}
	return "a text (put it in quotes)"
}

// fields are the keys of a struct, in its order.
type fields struct {
	names []string
	index map[string]int
}

func fieldsOf(t reflect.Type) fields {
	f := fields{index: map[string]int{}}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		f.names = append(f.names, name)
		f.index[name] = i
	}
	return f
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
