package policy

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/go-json-experiment/json"
)

// OnErase says what happens when a guarded system erases its own entry: [Restore] or [Alert].
//
// In a file it is either of these words, for every component, or a map from component patterns (as in path.Match) to
// words, where "*" is the default and restore stands where nothing matches. `job-*: alert` is built in whatever is
// written: Flink removes the entry of a job that has ended, and putting it back would point clients at nobody.
type OnErase struct {
	Default  string
	Patterns map[string]string
}

// For is the word that holds for one component. Of several matching patterns the longest one counts, the
// alphabetically first among equals.
func (o OnErase) For(component string) string {
	if ok, _ := path.Match("job-*", component); ok { // the pattern is well formed
		return Alert
	}
	word, best := o.Default, -1
	for _, pattern := range slices.Sorted(maps.Keys(o.Patterns)) {
		ok, err := path.Match(pattern, component)
		if err == nil && ok && len(pattern) > best {
			word, best = o.Patterns[pattern], len(pattern)
		}
	}
	return word
}

func (o OnErase) validate() error {
	errs := []error{oneOf("onErase", o.Default, Restore, Alert)}
	for _, pattern := range slices.Sorted(maps.Keys(o.Patterns)) {
		if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, fmt.Errorf("onErase: pattern %q: %w", pattern, err))
		}
		errs = append(errs, oneOf("onErase."+pattern, o.Patterns[pattern], Restore, Alert))
	}
	return errors.Join(errs...)
}

// MarshalJSON writes the short form where it says everything.
func (o OnErase) MarshalJSON() ([]byte, error) {
	if len(o.Patterns) == 0 {
		return json.Marshal(o.Default)
	}
	all := maps.Clone(o.Patterns)
	all["*"] = o.Default
	return json.Marshal(all, json.Deterministic(true))
}

// UnmarshalJSON reads both forms.
func (o *OnErase) UnmarshalJSON(text []byte) error {
	*o = OnErase{Default: Restore}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte{'"'}) {
		return json.Unmarshal(text, &o.Default)
	}
	if err := json.Unmarshal(text, &o.Patterns); err != nil {
		return fmt.Errorf("onErase is %q, %q or a map from component patterns to these: %w", Restore, Alert, err)
	}
	if word, ok := o.Patterns["*"]; ok {
		o.Default = word
		delete(o.Patterns, "*")
	}
	if len(o.Patterns) == 0 {
		o.Patterns = nil
	}
	return nil
}
