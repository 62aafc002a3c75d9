package config

import (
	"fmt"
	"path/filepath"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// File is a YAML file that was read, with what is wrong with it.
type File struct{ d *decoder }

// Read reads a file as strictly as [Load] does, with neither variables nor flags, into what into points to: a struct with
// its defaults, whose fields are named as their JSON. Example is the command that prints such a file. The error says that
// the file can't be read, or is [Problems] where it is not there or is no YAML; all else that is wrong is kept for
// [File.Err].
func Read(name, example string, into any) (*File, error) {
	d := newDecoder(name)
	d.example = example
	body, err := d.parse(name)
	if err != nil {
		return nil, err
	}
	if body != nil {
		d.value(body, "", reflect.ValueOf(into).Elem())
	}
	return &File{d}, nil
}

// Said says whether the file has a key: server, checks[0].settings.paths.
func (f *File) Said(key string) bool {
	_, ok := f.d.origins[key]
	return ok
}

// Fail adds a problem with a key's value, or with its absence.
func (f *File) Fail(key, format string, args ...any) {
	f.d.problems = append(f.d.problems, &Problem{From: line(f.d.origins, key), Key: key, Text: fmt.Sprintf(format, args...)})
}

// Err is everything that is wrong, as [Problems], or nil.
func (f *File) Err() error {
	if len(f.d.problems) == 0 {
		return nil
	}
	return f.d.problems
}

func newDecoder(file string) *decoder {
	return &decoder{
		file: filepath.Base(file), origins: map[string]Origin{}, anchors: map[string]ast.Node{},
		notYet: func(string) (string, bool) { return "", false },
	}
}

// line is where a key was said, or what it is under.
func line(origins map[string]Origin, key string) string {
	for k := key; k != ""; k = parent(k) {
		if o, ok := origins[k]; ok {
			return o.Detail
		}
	}
	return ""
}
