package zk

import (
	"context"
	"fmt"
	"sync"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// target is one znode for each component.
type target struct {
	client *Client
	group  string
	spec   journal.Target

	mu      sync.Mutex
	objects map[string]*object // by component
	added   chan struct{}      // closed and replaced when an object is added
}

// PerComponent implements [projector.Target].
func (*target) PerComponent() bool { return true }

// object is the one that shows a component, known from now on. The error says why there can be none.
func (t *target) object(component string) (*object, error) {
	if err := validateComponent(component); err != nil {
		return nil, err
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
	return o, nil
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
	receipt := projector.Receipt{}
	for component := range doc.Entries {
		o, err := t.object(component)
		if err != nil {
			receipt.Rejected = map[string]error{component: err}
			continue
		}
		if receipt, err = o.push(ctx, doc); err != nil {
			return projector.Receipt{}, fmt.Errorf("%s: %w", o.path, err)
		}
	}
	return receipt, nil
}

// Read implements [projector.Target].
func (t *target) Read(ctx context.Context, components []string) ([]projector.Observation, error) {
	s, err := t.client.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.sync(ctx, t.client.root+"/"); err != nil {
		return nil, err
	}
	observations := make([]projector.Observation, 0, len(components))
	for _, component := range components {
		o, err := t.object(component)
		if err != nil {
			observations = append(observations, projector.Observation{Component: component})
			continue // it can't be shown, so it is not
		}
		v, err := o.read(ctx, s)
		if err != nil {
			return nil, classifyRead(err)
		}
		shown := o.see(v)
		observations = append(observations, shown.observation(component))
	}
	return observations, nil
}

func (s *sight) observation(component string) projector.Observation {
	return projector.Observation{
		Component: component, Revision: s.revision, Sequence: s.sequence, Entry: s.entry, Participants: s.participants,
	}
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
				watchers.Go(func() { newWatcher(o, say).run(ctx) })
			}
		}
		select {
		case <-added:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
