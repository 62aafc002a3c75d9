package k8s

import (
	"context"
	"fmt"
	"sync"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// target is one ConfigMap, or one object for each component.
type target struct {
	client *Client
	group  string
	spec   journal.Target

	mu      sync.Mutex
	objects map[string]*object // by component; "" where one object shows all
	added   chan struct{}      // closed and replaced when an object is added
}

// PerComponent implements [projector.Target].
func (t *target) PerComponent() bool { return perComponent(t.spec) }

// object is the one that shows a component, known from now on.
func (t *target) object(component string) *object {
	if !t.PerComponent() {
		component = ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.objects[component]
	if o == nil {
		o = newObject(t, component)
		t.objects[component] = o
		close(t.added)
		t.added = make(chan struct{})
	}
	return o
}

// all are the objects that are known, and a channel that is closed when there are more.
func (t *target) all() ([]*object, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	objects := make([]*object, 0, len(t.objects))
	for _, o := range t.objects {
		objects = append(objects, o)
	}
	return objects, t.added
}

// Push implements [projector.Target].
func (t *target) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	if t.spec.Observe {
		return projector.Receipt{}, fmt.Errorf("%w: target %s is only observed", projector.ErrPermanent, t.spec.Name)
	}
	return t.object(doc.Component).push(ctx, doc)
}

// Watch implements [projector.Target]. Objects of components that are pushed for the first time meanwhile are watched
// from then on.
func (t *target) Watch(ctx context.Context, report func(projector.Observation) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel(nil)
	var one sync.Mutex
	say := func(o projector.Observation) {
		one.Lock()
		defer one.Unlock()
		if ctx.Err() != nil {
			return
		}
		if err := report(o); err != nil {
			cancel(err)
		}
	}
	watched := map[*object]bool{}
	for {
		objects, added := t.all()
		if len(objects) == 0 {
			say(projector.Observation{Gap: true})
		}
		for _, o := range objects {
			if !watched[o] {
				watched[o] = true
				watchers.Go(func() { (&watcher{object: o, report: say}).run(ctx) })
			}
		}
		select {
		case <-added:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
