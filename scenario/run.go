package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Options are how a scenario is run.
type Options struct {
	Backend Backend   // nil: simulated
	Journal io.Writer // where the journal is printed as it grows; nil: nowhere
}

var (
	// ErrFailed is wrapped by every error that says that the outcome is not the expected one.
	ErrFailed = errors.New("scenario failed")

	// ErrInexpressible says that the backend has no way to show what the scenario is about. Nothing was run.
	ErrInexpressible = errors.New("the backend can't express it")
)

// Run plays a scenario and returns the first thing that is not as it must be: an error that wraps [ErrFailed] says at
// which step, what was expected and what came. One that wraps [ErrInexpressible] goes by what the file says, and was
// found before anything was run. Any other error is one of the file or the backend.
func Run(ctx context.Context, s *Scenario, o Options) (err error) {
	if o.Backend == nil {
		o.Backend = simulated{}
	}
	if err := s.check(o.Backend); err != nil {
		return fmt.Errorf("%w: %w", ErrInexpressible, err)
	}
	w, err := newWorld(ctx, s, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, step := range s.steps {
		if w.out != nil {
			fmt.Fprintf(w.out, "step %d: %s %s\n", step.number, step.verb, step.value)
		}
		if err := w.run(step); err != nil {
			return fmt.Errorf("step %d: %s: %w", step.number, step.verb, err)
		}
	}
	if err := w.converge(); err != nil {
		return fmt.Errorf("after the last step: %w", err)
	}
	return nil
}

// check asks the backend about every target, and the components that it is to show.
func (s *Scenario) check(b Backend) error {
	for _, spec := range s.targets() {
		components := slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return !spec.Shows(name) })
		if err := b.Check(spec, components); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) run(s step) error {
	if s.verb == "expect" {
		return w.expect(s.value)
	}
	if err := w.do(s); err != nil {
		return err
	}
	return w.check()
}

// settled is how long a target may take to show its intent after all faults have stopped.
const settled = 15 * time.Minute

// converge ends every fault and has every target show its intent (I9).
func (w *world) converge() error {
	w.out = nil
	for _, name := range sortedKeys(w.objects) {
		o := w.objects[name]
		o.fault = nil
		if err := w.let(o); err != nil {
			return err
		}
		if o.deaf {
			if err := w.hear(o); err != nil {
				return err
			}
		}
	}
	if err := w.wake(); err != nil {
		return err
	}
	if err := w.settle(); err != nil { // an instance that was frozen finds out whether it has been replaced
		return err
	}
	if w.active() == nil {
		if err := w.start(); err != nil {
			return err
		}
	}
	if err := w.advance(settled); err != nil {
		return err
	}
	return errors.Join(w.check(), w.checkConverged())
}

// failed is an error for what is not as expected.
func failed(what []string) error {
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("%w\n%s", ErrFailed, strings.Join(what, "\n"))
}
