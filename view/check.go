package view

import (
	"errors"
	"fmt"
)

// errIncomplete is of a snapshot that no view has written.
var errIncomplete = errors.New("the state is incomplete")

// check says what keeps a group that was read from being one that a view wrote, as far as the fold relies on it.
func (g *Group) check(name string) error {
	if g == nil || g.Name != name || g.Candidates == nil || g.Components == nil {
		return errIncomplete
	}
	if err := g.Policy.Validate(); err != nil {
		return fmt.Errorf("its policy: %w", err)
	}
	for i := range g.Targets {
		if err := g.Targets[i].Validate(); err != nil {
			return fmt.Errorf("its target %q: %w", g.Targets[i].Name, err)
		}
	}
	for name, k := range g.Candidates {
		if err := k.check(name); err != nil {
			return fmt.Errorf("candidate %q: %w", name, err)
		}
	}
	for name, c := range g.Components {
		if err := c.check(name); err != nil {
			return fmt.Errorf("component %q: %w", name, err)
		}
	}
	return nil
}

func (k *Candidate) check(name string) error {
	if k == nil || k.Name != name || !whole(k.Checks) {
		return errIncomplete
	}
	for i := range k.Early {
		if !whole(k.Early[i].Checks) {
			return errIncomplete
		}
	}
	return nil
}

func (c *Component) check(name string) error {
	if c == nil || c.Name != name || !whole(c.Targets) || c.Term != nil && c.Term.Epoch != c.Epoch {
		return errIncomplete
	}
	return nil
}

func whole[T any](all map[string]*T) bool {
	for _, x := range all {
		if x == nil {
			return false
		}
	}
	return true
}
