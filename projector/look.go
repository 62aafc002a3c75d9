package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// BuiltIn is what the key-value bucket is called where targets are named.
const BuiltIn = "kv"

const (
	lookTimeout = 5 * time.Second // for one object
	looks       = 8               // objects of one target that are read at one time
)

var errNoTarget = errors.New("the group has no target of this name any more")

// Reading is what a target shows for one component, or why that is not known.
type Reading struct {
	Observation
	Error string // in one line, at most 1 KiB; empty: it was read
}

// HasBuiltIn says whether groups are shown in the built-in bucket.
func (p *Projector) HasBuiltIn() bool { return p.cfg.Leaders != nil }

// Look reads what a target shows now for each of these components, in their order, by the backend's own word, whether or
// not this instance acts. It writes nothing, and waits for no object for more than 5 s. An empty name means the built-in
// bucket.
func (p *Projector) Look(ctx context.Context, group, target string, components []string) []Reading {
	readings := make([]Reading, len(components))
	for i, name := range components {
		readings[i].Component = name
	}
	t, err := p.lookedAt(group, target)
	switch {
	case err != nil:
		fail(readings, err)
	case t.PerComponent():
		inParts(ctx, t, readings)
	default:
		atOnce(ctx, t, readings)
	}
	return readings
}

// lookedAt is a target as the newest policy describes it.
func (p *Projector) lookedAt(group, name string) (Target, error) {
	if name == "" && p.HasBuiltIn() {
		return p.cfg.Leaders(group), nil
	}
	var spec journal.Target
	err := errNoTarget
	p.Read(func(v *view.View) {
		if g := v.Group(group); g != nil && g.TargetSpec(name) != nil {
			spec, err = *g.TargetSpec(name), nil
		}
	})
	if err != nil {
		return nil, err
	}
	return p.targets.get(group, spec)
}

// inParts reads objects of one component each, some at a time: one that can't be read does not keep the others from
// being known. When none at all has been read for 5 s, the rest is given up.
func inParts(ctx context.Context, t Target, readings []Reading) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(lookTimeout, func() { cancel(errLate) })
	defer late.Stop()
	places := make(chan struct{}, looks)
	var all sync.WaitGroup
	for i := range readings {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			if atOnce(ctx, t, readings[i:i+1]); readings[i].Error == "" {
				late.Reset(lookTimeout)
			}
		})
	}
	all.Wait()
}

var errLate = fmt.Errorf("there was no answer within %s", lookTimeout)

// atOnce reads what one object shows.
func atOnce(ctx context.Context, t Target, readings []Reading) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, errLate)
	defer cancel()
	components := make([]string, len(readings))
	for i := range readings {
		components[i] = readings[i].Component
	}
	shown, err := t.Read(ctx, components)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil {
		fail(readings, err)
		return
	}
	for i := range readings {
		readings[i].Observation = shown[i]
	}
}

func fail(readings []Reading, err error) {
	for i := range readings {
		readings[i].Error = bounded(err.Error())
	}
}
