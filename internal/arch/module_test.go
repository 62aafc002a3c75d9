package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the source of a Go module: what is built, for every platform, without its tests.
type module struct {
	path     string
	packages map[string][]*file // by directory
}

type file struct {
	name    string
	imports []string // paths; those of the module itself as directories, with a leading ./
	syntax  *ast.File
}

func load(fsys fs.FS) (*module, error) {
	gomod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	m := &module{packages: map[string][]*file{}}
	for line := range strings.Lines(string(gomod)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			m.path = strings.TrimSpace(name)
		}
	}
	if m.path == "" {
		return nil, fmt.Errorf("go.mod has no module line")
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return m.enter(fsys, name)
		case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			return m.add(fsys, name)
		}
		return nil
	})
	return m, err
}

// enter leaves out what the go command leaves out: hidden directories, test data, other modules.
func (m *module) enter(fsys fs.FS, dir string) error {
	base := path.Base(dir)
	if dir == "." {
		return nil
	}
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (m *module) add(fsys fs.FS, name string) error {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{name: name, syntax: syntax}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if own, ok := strings.CutPrefix(imported, m.path+"/"); ok {
			imported = "./" + own
		}
		f.imports = append(f.imports, imported)
	}
	dir := path.Dir(name)
	m.packages[dir] = append(m.packages[dir], f)
	return nil
}

// dirs are the packages of the module, sorted.
func (m *module) dirs() []string { return slices.Sorted(maps.Keys(m.packages)) }

// imports are the packages of the module that one imports itself.
func (m *module) imports(dir string) []string {
	found := map[string]bool{}
	for _, f := range m.packages[dir] {
		for _, imported := range f.imports {
			if own, ok := strings.CutPrefix(imported, "./"); ok {
				found[own] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// reach are the packages of the module that one is built of: itself first, and for each one that imports it.
func (m *module) reach(dir string) (dirs []string, through map[string]string) {
	dirs, through = []string{dir}, map[string]string{dir: ""}
	for i := 0; i < len(dirs); i++ {
		for _, next := range m.imports(dirs[i]) {
			if _, seen := through[next]; !seen {
				dirs, through[next] = append(dirs, next), dirs[i]
			}
		}
	}
	return dirs, through
}
