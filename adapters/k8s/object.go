package k8s

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// object is one object of a target, and what is known of it: by its watch, or by what was written last.
type object struct {
	resource
	target    *target
	component string // empty where it shows all
	layout    layout
	subject   string // what it is allowed to show

	mu       sync.Mutex
	known    *version // nil: nothing
	expected map[string]bool
	writing  *sight   // what a write that is under way shows
	own      []uint64 // revisions of our newest writes
}

// ownWrites is how many of our writes are told from others' when the watch is late.
const ownWrites = 64

func newObject(t *target, component string) *object {
	k, _ := kindOf(t.spec.Kind) // it was validated
	o := &object{
		resource: resource{
			client: t.client, kind: k, namespace: t.spec.Namespace, name: objectName(t.group, t.spec, component),
			glimpse: t.spec.Guarded || t.spec.Observe, // renewed all the time, and seldom or never written
		},
		target:    t,
		component: component,
		layout:    layoutOf(t.spec, component),
		subject:   t.group,
		expected:  map[string]bool{},
	}
	switch {
	case component != "":
		o.subject += "/" + component
		o.expected[component] = true
	default:
		for _, name := range t.spec.Components {
			o.expected[name] = true
		}
	}
	return o
}

// expect has components reported where they are missing.
func (o *object) expect(doc *projector.Document) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for component := range doc.Entries {
		o.expected[component] = true
	}
}

// newest is the newest version that is known, or nil.
func (o *object) newest() *version {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known
}

// current is the newest version that is known, or what the API server says, to be written upon.
func (o *object) current(ctx context.Context, fresh bool) (*version, error) {
	known := o.newest()
	if known != nil && !known.glimpsed && !fresh {
		return known, known.decode(o.kind)
	}
	v, err := o.get(ctx)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == known { // else the watch saw something meanwhile
		o.known = v
	}
	return v, v.decode(o.kind)
}

// replace writes a new version in the place of one, on condition that it still is the newest.
func (o *object) replace(ctx context.Context, was *version, with *unstructured.Unstructured) (*version, error) {
	text, err := with.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", &o.resource, err)
	}
	next := &version{}
	if err := json.Unmarshal(text, &next.excerpt); err != nil {
		return nil, fmt.Errorf("encode %s: %w", &o.resource, err)
	}
	shown := o.see(next)
	o.mu.Lock()
	o.writing = &shown
	o.mu.Unlock()
	v, err := o.write(ctx, text, was.object == nil)

	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = nil
	if err != nil {
		if o.known == was {
			o.known = nil // it is not the newest, or may not be
		}
		return nil, err
	}
	if len(o.own) == ownWrites {
		o.own = slices.Delete(o.own, 0, 1)
	}
	o.own = append(o.own, v.revision)
	o.learn(v)
	return v, nil
}

// learn takes a version for known that is newer. mu is held.
func (o *object) learn(v *version) {
	if o.known == nil || v.revision >= o.known.revision {
		o.known = v
	}
}

// saw learns of a version from the watch, and says whether it is of our own making.
func (o *object) saw(v *version, shown sight) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.learn(v)
	return slices.Contains(o.own, v.revision) || o.writing != nil && o.writing.same(shown)
}

// settle takes what was listed for known, even where it is older: the backend may have been restored. It does not where
// a push has learned of something newer since was was known, which the list need not have seen. It returns the newest.
// Revisions of our writes that are higher are of before a restore: they come again, and are others'.
func (o *object) settle(listed, was *version) *version {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || o.known == was || o.known.revision < listed.revision {
		o.known = listed
	}
	o.own = slices.DeleteFunc(o.own, func(revision uint64) bool { return revision > o.known.revision })
	return o.known
}

// sight is what an object shows that concerns leadership.
type sight struct {
	revision uint64
	sequence uint64
	holder   string
	entries  map[string]*journal.LeaderInfo // not to be changed
	data     jsontext.Value                 // a ConfigMap's, in which the entries lie
}

func (o *object) see(v *version) sight { return o.seeAfter(sight{}, v) }

// seeAfter is what a version shows that comes after another. Data that are the same are not read again: most that comes
// is the renewal of a lock.
func (o *object) seeAfter(before sight, v *version) sight {
	s := sight{revision: v.revision, sequence: v.fence(), holder: v.lockHolder(), data: v.Data}
	if len(s.data) > 0 && bytes.Equal(before.data, s.data) {
		s.entries = before.entries
		return s
	}
	s.entries = map[string]*journal.LeaderInfo{}
	for component, leader := range o.layout.entries(&v.excerpt) {
		if o.target.spec.Shows(component) && (o.component == "" || o.component == component) {
			s.entries[component] = leader
		}
	}
	return s
}

func (s *sight) same(other sight) bool {
	if s.sequence != other.sequence || s.holder != other.holder || len(s.entries) != len(other.entries) {
		return false
	}
	for component, leader := range s.entries {
		if !sameLeader(leader, other.entries[component]) {
			return false
		}
	}
	return true
}
