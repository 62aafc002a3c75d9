package zk

import (
	"context"
	"slices"
	"sync"
)

// object is one component of a target, and what is known of it: by its watch, or by what was written last.
type object struct {
	target    *target
	component string
	layout    layout
	path      string // of the entry; layout latch: of the directory
	fence     string

	mu      sync.Mutex
	known   *version // nil: nothing
	writing *sight   // what a write that is under way shows
	own     []uint64 // revisions of our newest writes
	writes  int      // that have ended
}

// ownWrites is how many of our writes are told from others' when the watch is late.
const ownWrites = 64

func newObject(t *target, component string) *object {
	root := t.client.root
	return &object{
		target: t, component: component, layout: layoutOf(t.spec.Layout),
		path: root + nodePath(t.spec, component), fence: root + fencePath(t.group, t.spec, component),
	}
}

func (o *object) isLatch() bool { return o.target.spec.Layout == Latch }

// current is the newest version that is known, or what the server says once it has caught up.
func (o *object) current(ctx context.Context, s *session, fresh bool) (*version, error) {
	o.mu.Lock()
	known := o.known
	o.mu.Unlock()
	if known != nil && !fresh {
		return known, nil
	}
	if err := s.sync(ctx, o.path); err != nil {
		return nil, err
	}
	v, err := o.read(ctx, s)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == known { // else the watch saw something meanwhile
		o.known = v
	}
	return v, nil
}

// begin says what a write will show.
func (o *object) begin(next *version) {
	shown := o.see(next)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = &shown
}

// finish says what came of a write to what was: next, or nothing that is known.
func (o *object) finish(was, next *version) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = nil
	o.writes++
	if next == nil {
		if o.known == was {
			o.known = nil // it is not the newest, or may not be
		}
		return
	}
	if len(o.own) == ownWrites {
		o.own = slices.Delete(o.own, 0, 1)
	}
	o.own = append(o.own, next.revision)
	o.learn(next)
}

// learn takes a version for known that is newer. mu is held.
func (o *object) learn(v *version) {
	if o.known == nil || v.revision >= o.known.revision {
		o.known = v
	}
}

// saw learns of a version from the watch, and says whether it is of our own making.
func (o *object) saw(v *version, shown *sight) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.learn(v)
	return slices.Contains(o.own, v.revision) || o.writing != nil && o.writing.same(shown)
}

// ended is how many of our writes have ended.
func (o *object) ended() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writes
}

// reset takes what was read for known, even where it is older: the ensemble may have been restored, and what we wrote
// since its backup comes again as others'. It does not where one of our writes, which the reading need not have seen,
// ended since it began.
func (o *object) reset(v *version, ended int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writes != ended {
		return false
	}
	o.known = v
	o.own = slices.DeleteFunc(o.own, func(revision uint64) bool { return revision > v.revision })
	return true
}
