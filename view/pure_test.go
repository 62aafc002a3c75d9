package view_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPure holds that the view can't reach a clock, randomness, a network, a disk or another goroutine: it imports
// nothing that has one, and of package time it calls nothing that reads a clock.
func TestPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	allowed := []string{
		"cmp", "container/heap", "crypto/sha256", "encoding/hex", "errors", "fmt", "io", "maps", "reflect", "slices", "strconv", "strings", "time",
		"github.com/go-json-experiment/json", "github.com/go-json-experiment/json/jsontext",
		"github.com/leadership-journal/journald/journal", "github.com/leadership-journal/journald/policy",
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.Contains(t, allowed, path, name)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				x, isName := s.X.(*ast.Ident)
				clock := slices.Contains([]string{"Now", "Since", "Until", "After", "Tick", "Sleep", "NewTimer", "NewTicker", "AfterFunc"}, s.Sel.Name)
				require.False(t, isName && x.Name == "time" && clock, "%s reads a clock: time.%s", name, s.Sel.Name)
			}
			_, goes := n.(*ast.GoStmt)
			require.False(t, goes, "%s starts a goroutine", name)
			return true
		})
	}
}
