package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// layers are the packages of the module from the bottom up. What is built of a package of one layer has none of its own
// layer, but itself and what is below it in the tree, and none of a higher one. Packages of internal that are not named
// here are helpers: they stand in the layer of whoever uses them.
func layers() [][]string {
	return [][]string{
		{"policy", "internal/nearest"},
		{"journal"},
		{"view"},
		{"alive"},
		{"projector"},
		{"journal/stream"},
		{"adapters/k8s", "adapters/kv", "adapters/zk", "client", "health", "replay", "scenario", "server", "config"},
		{"candidate"},
		{"agent"},
		{"cmd"},
	}
}

// pure are the packages without a clock and without I/O, together with whatever they are built of.
func pure() []string { return []string{"policy", "journal", "view"} }

// layer is where a package stands: the longest entry that it is, or is below, and the number of its layer.
func layer(dir string) (entry string, number int) {
	number = -1
	for n, entries := range layers() {
		for _, e := range entries {
			if under(dir, e) && len(e) > len(entry) {
				entry, number = e, n
			}
		}
	}
	return entry, number
}

func under(dir, entry string) bool { return dir == entry || strings.HasPrefix(dir, entry+"/") }

// upward are the imports that go up, or sideways.
func upward(m *module) (faults []string) {
	for _, dir := range m.dirs() {
		from, height := layer(dir)
		if height < 0 {
			continue
		}
		dirs, through := m.reach(dir)
		for _, to := range dirs[1:] {
			entry, n := layer(to)
			if n > height || n == height && entry != from {
				faults = append(faults, fmt.Sprintf("%s is built of %s, through %s: only what is above %s may be", dir, to, through[to], entry))
			}
		}
	}
	return faults
}

// unplaced are packages that no layer knows.
func unplaced(m *module) (faults []string) {
	for _, dir := range m.dirs() {
		if _, height := layer(dir); height < 0 && !under(dir, "internal") {
			faults = append(faults, dir+" stands in no layer: say in internal/arch where it belongs")
		}
	}
	return faults
}

// unwired are imports that only some may have: of adapters only cmd, of cmd nobody, of internal/testenv only tests.
func unwired(m *module) (faults []string) {
	for _, dir := range m.dirs() {
		for _, to := range m.imports(dir) {
			switch {
			case under(to, "adapters") && !under(dir, "cmd") && !sameAdapter(dir, to):
				faults = append(faults, fmt.Sprintf("%s imports %s: only cmd may import an adapter", dir, to))
			case under(to, "cmd") && !under(dir, "cmd"):
				faults = append(faults, fmt.Sprintf("%s imports %s: nobody imports cmd", dir, to))
			case under(to, "internal/testenv") && !under(dir, "internal/testenv"):
				faults = append(faults, fmt.Sprintf("%s imports %s, which is for tests", dir, to))
			}
		}
	}
	return faults
}

// sameAdapter says whether both are parts of one adapter: adapters/k8s and adapters/k8s/x.
func sameAdapter(a, b string) bool {
	first, second := strings.Split(a, "/"), strings.Split(b, "/")
	return len(first) > 1 && len(second) > 1 && first[0] == second[0] && first[1] == second[1]
}

// impure are the imports and the calls by which a pure package, or one that it is built of, has I/O, a clock or chance.
func impure(m *module) (faults []string) {
	seen := map[string]bool{}
	for _, start := range pure() {
		dirs, _ := m.reach(start)
		for _, dir := range dirs {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			for _, f := range m.packages[dir] {
				faults = append(faults, forbiddenImports(f)...)
				faults = append(faults, clockUses(f)...)
			}
		}
	}
	return faults
}

// forbiddenImports are those of a pure package's file that are not the module's own, not the JSON package, and not of
// the standard library's innocent part.
func forbiddenImports(f *file) (faults []string) {
	forbidden := []string{
		"net", "os", "syscall", "log", "math/rand", "crypto/rand", "crypto/tls", "database", "plugin", "runtime", "testing", "unsafe", "C",
		"io/ioutil", "path/filepath", "embed",
	}
	for _, imported := range f.imports {
		first, _, _ := strings.Cut(imported, "/")
		foreign := strings.Contains(first, ".") && first != "." && !under(imported, "github.com/go-json-experiment/json")
		if foreign || slices.ContainsFunc(forbidden, func(p string) bool { return under(imported, p) }) {
			faults = append(faults, f.name+" imports "+imported+", which is no part of a pure package")
		}
	}
	return faults
}

// clockUses are the places where a file names what reads or waits for a clock, called or not.
func clockUses(f *file) (faults []string) {
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}
	name := ""
	for _, spec := range f.syntax.Imports {
		if spec.Path.Value != `"time"` {
			continue
		}
		if name = "time"; spec.Name != nil {
			name = spec.Name.Name
		}
	}
	if name == "." {
		return []string{f.name + " imports all names of time: the clock's uses can't be seen"}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && name != "" && x.Name == name && slices.Contains(clock, s.Sel.Name) {
				faults = append(faults, f.name+" uses time."+s.Sel.Name+": a pure package has no clock")
			}
		}
		return true
	})
	return faults
}
