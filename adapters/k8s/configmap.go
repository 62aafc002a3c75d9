package k8s

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// configMap shows components as keys of a ConfigMap's data.
type configMap struct{ keys }

// keys is how components are spelled as keys, and leaders as values.
type keys interface {
	key(component string) string
	component(key string) (string, bool)
	encode(leader *journal.LeaderInfo) (string, error)
	decode(value string) *journal.LeaderInfo // nil: unreadable, which readers take for empty
}

func data(o *unstructured.Unstructured) map[string]any {
	d, _ := o.Object["data"].(map[string]any)
	return d
}

func value(o *unstructured.Unstructured, key string) (string, bool) {
	v, ok := data(o)[key].(string)
	return v, ok
}

func (l configMap) entries(x *excerpt) map[string]*journal.LeaderInfo {
	all, data := map[string]*journal.LeaderInfo{}, map[string]string{}
	if len(x.Data) == 0 || json.Unmarshal(x.Data, &data, trusting()) != nil {
		return all
	}
	for key, text := range data {
		component, ok := l.component(key)
		if !ok {
			continue
		}
		if leader := l.decode(text); leader != nil {
			all[component] = leader
		}
	}
	return all
}

func (l configMap) bare(o *unstructured.Unstructured, component string) bool {
	v, _ := value(o, l.key(component))
	return v == ""
}

func (l configMap) shows(o *unstructured.Unstructured, component string, e *projector.Entry) bool {
	have, ok := value(o, l.key(component))
	if e.Leader == nil {
		return !ok
	}
	want, err := l.encode(e.Leader)
	return err == nil && ok && have == want
}

func (l configMap) refuse(component string, e *projector.Entry) error {
	if problems := validation.IsConfigMapKey(l.key(component)); len(problems) > 0 {
		return fmt.Errorf("a ConfigMap can't have the key %q: %s", l.key(component), problems[0])
	}
	if e.Leader == nil {
		return nil
	}
	_, err := l.encode(e.Leader)
	return err
}

func (l configMap) set(o *unstructured.Unstructured, component string, e *projector.Entry, _ time.Time) {
	d := data(o)
	if e.Leader == nil {
		delete(d, l.key(component))
		return
	}
	if d == nil {
		d = map[string]any{}
		o.Object["data"] = d
	}
	d[l.key(component)], _ = l.encode(e.Leader) // it was asked by refuse
}

// flinkKeys is what Flink 1.15 and later read (FLINK-24038).
type flinkKeys struct{}

const flinkPrefix = "org.apache.flink.k8s.leader."

var errSession = errors.New("the layout flink needs a session that is a UUID in lower case, 8-4-4-4-12")

func (flinkKeys) key(component string) string { return flinkPrefix + component }

func (flinkKeys) component(key string) (string, bool) {
	component, ok := strings.CutPrefix(key, flinkPrefix)
	return component, ok && component != ""
}

func (flinkKeys) encode(leader *journal.LeaderInfo) (string, error) {
	if id, err := uuid.Parse(leader.Session); err != nil || id.String() != leader.Session {
		return "", errSession
	}
	if leader.Address == "" {
		return "", errNoAddress
	}
	return leader.Session + "," + leader.Address, nil
}

// decode reads what Flink would: everything after the first comma is the address, and the session is whatever Java's
// UUID.fromString takes, five groups of hexadecimal digits of any length.
func (flinkKeys) decode(value string) *journal.LeaderInfo {
	session, address, ok := strings.Cut(value, ",")
	if !ok || address == "" || len(session) > 36 {
		return nil
	}
	groups := strings.Split(session, "-")
	if len(groups) != 5 {
		return nil
	}
	widths := [...]int{8, 4, 4, 4, 12}
	for i, g := range groups {
		if g == "" || len(g) > 16 || strings.Trim(g, "0123456789abcdefABCDEF") != "" {
			return nil
		}
		g = strings.Repeat("0", max(widths[i]-len(g), 0)) + g
		groups[i] = strings.ToLower(g[len(g)-widths[i]:])
	}
	return &journal.LeaderInfo{Session: strings.Join(groups, "-"), Address: address}
}

// jsonKeys has leader infos as JSON.
type jsonKeys struct{}

func (jsonKeys) key(component string) string { return component }

func (jsonKeys) component(key string) (string, bool) { return key, true }

func (jsonKeys) encode(leader *journal.LeaderInfo) (string, error) {
	text, err := json.Marshal(leader, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("encode a leader: %w", err)
	}
	return string(text), nil
}

// decode takes only what names a session for a leader: other people's keys may hold any JSON.
func (jsonKeys) decode(value string) *journal.LeaderInfo {
	leader := &journal.LeaderInfo{}
	if err := json.Unmarshal([]byte(value), leader); err != nil || leader.Session == "" {
		return nil
	}
	return leader
}
