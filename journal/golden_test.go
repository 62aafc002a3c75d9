package journal_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The files of testdata are what v1 wrote, one for each kind: journals hold such events for ever.
func TestGolden(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		path := filepath.Join("testdata", e.Data.Kind()+".json")
		text, err := e.Encode()
		require.NoError(t, err)
		pretty := jsontext.Value(text).Clone()
		require.NoError(t, pretty.Indent(jsontext.WithIndent("  ")))
		if *update {
			require.NoError(t, os.WriteFile(path, append(pretty, '\n'), 0o644))
		}
		golden, err := os.ReadFile(path)
		require.NoError(t, err, "go test ./journal -update writes it")
		require.Equal(t, string(golden), string(pretty)+"\n")

		read, err := journal.Decode(golden)
		require.NoError(t, err)
		require.Equal(t, e, read)
		again, err := read.Encode()
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
	})
}

func TestGoldenFilesAreOneForEachKind(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(t, err)
	var kinds []string
	for _, f := range files {
		kinds = append(kinds, strings.TrimSuffix(filepath.Base(f), ".json"))
	}
	require.ElementsMatch(t, journal.Kinds(), kinds)
}

// An event with nothing but what it must have is written without members that are null, empty or zero by default.
func TestEncodeLeavesOutWhatIsOptional(t *testing.T) {
	for want, e := range map[string]journal.Event{
		`{"specversion":"1.0","id":"1","source":"candidate/a","type":"leadership.confirm.v1","subject":"g/c",` +
			`"data":{"session":"s","candidate":"a","address":"x","attempt":1}}`: {
			ID: "1", Source: "candidate/a", Group: "g", Component: "c",
			Data: &journal.Confirm{Session: "s", Candidate: "a", Address: "x", Attempt: 1},
		},
		`{"specversion":"1.0","id":"1","source":"observer/k8s","type":"leadership.watch.v1","subject":"g/c",` +
			`"data":{"target":"t","revision":0,"entry":null}}`: {
			ID: "1", Source: "observer/k8s", Group: "g", Component: "c", Data: &journal.Watch{Target: "t"},
		},
		`{"specversion":"1.0","id":"1","source":"candidate/a","type":"leadership.ready.v1","subject":"g/c",` +
			`"data":{"session":"s","ready":false}}`: {
			ID: "1", Source: "candidate/a", Group: "g", Component: "c", Data: &journal.Ready{Session: "s"},
		},
		`{"specversion":"1.0","id":"1","source":"candidate/a","type":"leadership.join.v1","subject":"g",` +
			`"data":{"candidate":"a","incarnation":"1","components":["c"]}}`: {
			ID: "1", Source: "candidate/a", Group: "g", Data: &journal.Join{Candidate: "a", Incarnation: "1", Components: []string{"c"}},
		},
	} {
		require.NoError(t, e.Validate())
		text, err := e.Encode()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

func TestEncodeIsInUTC(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	e := sample("ready")
	want, err := e.Encode()
	require.NoError(t, err)
	e.Time = e.Time.In(zone)
	got, err := e.Encode()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
