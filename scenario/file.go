package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"

	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// Scenario is an incident and its expected outcome.
type Scenario struct {
	Name    string                      `json:"name"`
	Source  []string                    `json:"source"` // where the incident was reported
	About   string                      `json:"about"`
	Policy  jsontext.Value              `json:"policy"`
	Targets map[string]shown            `json:"targets"`
	Steps   []map[string]jsontext.Value `json:"steps"`

	policy policy.Policy
	steps  []step
	names  []string // every component named in the file
}

// shown is what a target shows.
type shown struct {
	Components []string `json:"components"`
}

// step is one verb with its value.
type step struct {
	number int
	verb   string
	value  jsontext.Value
}

// LoadFile reads a scenario; its name must be the file's.
func LoadFile(path string) (*Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a scenario: %w", err)
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)); s.Name != base {
		return nil, fmt.Errorf("%s: name is %q; a scenario is called as its file: %s", path, s.Name, base)
	}
	return s, nil
}

// Parse reads a scenario from YAML. Keys that it does not know are errors.
func Parse(text []byte) (*Scenario, error) {
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	s := &Scenario{}
	if err := strict("", text, s); err != nil {
		return nil, err
	}
	if s.Name == "" || len(s.Steps) == 0 {
		return nil, errors.New("a scenario has a name and steps")
	}
	s.policy = policy.Default()
	if len(s.Policy) > 0 {
		if err := strict("policy", s.Policy, &s.policy); err != nil {
			return nil, err
		}
	}
	if err := s.policy.Validate(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if len(s.Targets) == 0 {
		s.Targets = map[string]shown{"cm": {}}
	}
	return s, s.readSteps()
}

func (s *Scenario) readSteps() error {
	components := map[string]bool{}
	for i, m := range s.Steps {
		if len(m) != 1 {
			return fmt.Errorf("step %d: has the verbs %s; a step has one", i+1, strings.Join(slices.Sorted(maps.Keys(m)), ", "))
		}
		for verb, value := range m {
			if !slices.Contains(verbs(), verb) {
				return fmt.Errorf("step %d: %q is no verb%s", i+1, verb, nearest.Hint(verb, verbs()))
			}
			s.steps = append(s.steps, step{i + 1, verb, value})
			var named struct {
				Component  string   `json:"component"`
				Components []string `json:"components"`
			}
			if err := json.Unmarshal(value, &named); err == nil {
				for _, name := range append(named.Components, named.Component) {
					components[name] = name != ""
				}
			}
		}
	}
	for name, ok := range components {
		if ok {
			s.names = append(s.names, name)
		}
	}
	slices.Sort(s.names)
	return nil
}

// targets are the group's targets, as the contract describes them.
func (s *Scenario) targets() []journal.Target {
	var all []journal.Target
	for _, name := range slices.Sorted(maps.Keys(s.Targets)) {
		all = append(all, journal.Target{
			Name: name, Kind: "simulated", Components: s.Targets[name].Components, Guarded: s.policy.Authority == policy.Backend,
		})
	}
	return all
}

func eventVerbs() []string {
	return []string{
		"join", "leave", "grant", "revoke", "confirm", "ready", "release", "withdraw", "health", "watch",
		"transfer", "exclude", "include", "pause", "resume", "policy", "retry",
	}
}

func worldVerbs() []string {
	return []string{
		"advance", "fail", "hold", "let", "write", "drop", "deaf", "hear", "silent", "alive", "projector", "redeliver", "append",
	}
}

func verbs() []string { return slices.Concat(eventVerbs(), worldVerbs(), []string{"expect"}) }

// strict decodes JSON and names whatever it does not know.
func strict(what string, text []byte, into any) error {
	err := json.Unmarshal(text, into, json.RejectUnknownMembers(true))
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		at := strings.TrimPrefix(what+strings.ReplaceAll(string(semantic.JSONPointer), "/", "."), ".")
		if errors.Is(err, json.ErrUnknownName) {
			return fmt.Errorf("%s: is not a key that is known here", at)
		}
		return fmt.Errorf("%s: %w", at, err)
	}
	return err
}

// text decodes a value that is one word.
func word(value jsontext.Value) (string, error) {
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", fmt.Errorf("%s is not a word", value)
	}
	return s, nil
}

func duration(value jsontext.Value) (time.Duration, error) {
	var d policy.Duration
	if err := json.Unmarshal(value, &d); err != nil {
		return 0, fmt.Errorf("%s is not a duration such as 30s or 10m", bytes.TrimSpace(value))
	}
	return time.Duration(d), nil
}
