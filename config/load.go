package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/leadership-journal/journald/journal"
)

// Sources is where a configuration is read from.
type Sources struct {
	File  string          // empty: none
	Env   []string        // as of os.Environ
	Flags map[string]Flag // by key, those that were given

	// Target says why a target can't be served; nil for one that can.
	Target func(group string, spec journal.Target) error

	// ZooKeeper says what is wrong with a list of ZooKeeper's servers; nil: nothing.
	ZooKeeper func(servers []string) error
}

// Flag is one that was given on the command line.
type Flag struct {
	Name  string // without dashes
	Value string
}

// Effective is a configuration that was read and checked.
type Effective struct {
	Config
	origins map[string]Origin
}

// Load reads all sources and checks what comes of them. What is wrong with what they say is [Problems], all of them;
// any other error says that the file can't be read.
func Load(s Sources) (*Effective, error) {
	d := newDecoder(s.File)
	d.example, d.notYet = "journald config example", notYet
	body, err := d.parse(s.File)
	if err != nil {
		return nil, err
	}
	e := &Effective{Config: Default(), origins: d.origins}
	d.config(body, s, &e.Config)
	if _, said := e.origins["nats.embedded"]; e.NATS.URL != "" && !said {
		e.NATS.Embedded = false
	}
	if err := e.name(); err != nil {
		return nil, err
	}
	d.problems = append(d.problems, e.check(s)...)
	if len(d.problems) > 0 {
		return nil, d.problems
	}
	return e, nil
}

func (d *decoder) parse(file string) (ast.Node, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Problems{{From: file, Text: "there is no such file; `" + d.example + "` prints one to begin with"}}
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, Problems{d.syntax(err)}
	}
	if len(tree.Docs) > 1 {
		return nil, Problems{{From: d.file, Text: "has several documents; one is wanted"}}
	}
	if len(tree.Docs) == 0 {
		return nil, nil
	}
	return tree.Docs[0].Body, nil
}

func (d *decoder) syntax(err error) *Problem {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil {
		return &Problem{From: fmt.Sprintf("%s:%d", d.file, e.GetToken().Position.Line), Text: "is not YAML: " + e.GetMessage()}
	}
	return &Problem{From: d.file, Text: "is not YAML: " + err.Error()}
}

// config decodes the groups last, since the defaults hold for them wherever these stand.
func (d *decoder) config(body ast.Node, s Sources, c *Config) {
	rest, groups := split(body)
	if rest != nil {
		d.value(rest, "", reflect.ValueOf(c).Elem())
	}
	d.override(c, s)
	d.defaults = c.Defaults.Policy
	if groups != nil {
		d.value(groups, "groups", reflect.ValueOf(&c.Groups).Elem())
	}
}

func split(body ast.Node) (rest, groups ast.Node) {
	document, ok := body.(*ast.MappingNode)
	if !ok {
		return body, nil
	}
	others := *document
	others.Values = nil
	for _, e := range document.Values {
		if groups == nil && e.Key.GetToken().Value == "groups" {
			groups = e.Value
		} else {
			others.Values = append(others.Values, e)
		}
	}
	return &others, groups
}

// override lets the environment and the flags have their say.
func (d *decoder) override(c *Config, s Sources) {
	env := environment(s.Env)
	leaves("", reflect.ValueOf(c).Elem(), func(key string, v reflect.Value) {
		if value, ok := env[Variable(key)]; ok {
			d.set(key, v, value, Origin{Kind: FromEnvironment, Detail: Variable(key)})
		}
		if flag, ok := s.Flags[key]; ok {
			d.set(key, v, flag.Value, Origin{Kind: FromFlag, Detail: "--" + flag.Name})
		}
	})
}

func environment(all []string) map[string]string {
	env := map[string]string{}
	for _, one := range all {
		if name, value, ok := strings.Cut(one, "="); ok && strings.HasPrefix(name, "JOURNALD_") {
			env[name] = value
		}
	}
	return env
}

// Variable is the environment variable that sets a key: JOURNALD_NATS_MAX_BYTES for nats.maxBytes.
func Variable(key string) string {
	var b strings.Builder
	b.WriteString("JOURNALD_")
	for i, r := range key {
		switch {
		case r == '.':
			r = '_'
		case i > 0 && 'A' <= r && r <= 'Z':
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
