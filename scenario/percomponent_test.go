package scenario

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// split is a backend in memory whose targets are one object for each component.
type split struct{ simulated }

func (split) Open(context.Context, string, journal.Target) (Object, error) { return parts{}, nil }

type parts map[string]*store

func (p parts) of(component string) *store {
	if p[component] == nil {
		p[component] = &store{clock: 10}
	}
	return p[component]
}

func (p parts) Target() (projector.Target, error) { return splitTarget{parts: p}, nil }

func (p parts) Show(ctx context.Context, component string) (State, error) {
	return p.of(component).Show(ctx, component)
}

func (p parts) Write(ctx context.Context, c Change) error { return p.of(c.Component).Write(ctx, c) }

func (p parts) Drop(ctx context.Context) error {
	for _, one := range p {
		if err := one.Drop(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p parts) Close(context.Context) error { return nil }

type splitTarget struct {
	*simTarget // of what no scenario uses
	parts      parts
}

func (splitTarget) PerComponent() bool { return true }

func (t splitTarget) Push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	return (&simTarget{t.parts.of(doc.Component)}).Push(ctx, doc)
}

// TestScenariosOfTheProjectOnObjectsForEachComponent has the outcome be the same where components share no object.
func TestScenariosOfTheProjectOnObjectsForEachComponent(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			s, err := LoadFile(file)
			require.NoError(t, err)
			require.NoError(t, Run(t.Context(), s, Options{Backend: split{}}))
		})
	}
}

func TestRandomIncidentsOnObjectsForEachComponent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { play(t, Options{Backend: split{}}) })
}

// TestComponentsShareNoObject holds what a file may say of a target whatever it consists of.
func TestComponentsShareNoObject(t *testing.T) {
	const begin = `
name: test
targets: {cm: {}, other: {}}
steps:
  - grant:   {component: a, candidate: n-1, session: A1}
  - grant:   {component: b, candidate: n-1, session: B1}
  - confirm: {component: a, session: A1, address: a1}
  - confirm: {component: b, session: B1, address: b1}
`
	for name, steps := range map[string]string{
		"a fault is of all that was written at once": `
  - fail:    {target: cm, error: unavailable}
  - drop:    cm
  - expect:  {target: {cm: {a: absent, b: absent}}}
  - advance: 2s
  - expect:  {target: {cm: {a: {address: a1}, b: {address: b1}}}}
`,
		"a fault ends with the first write that lands": `
  - fail:    {target: cm, error: unavailable, times: 2}
  - confirm: {component: a, session: A1, address: a2}
  - advance: 1m
  - confirm: {component: b, session: B1, address: b2}
  - expect:  {target: {cm: {a: {address: a2}, b: {address: b2}}}}
`,
		"a newer sequence is the whole target's": `
  - write:   {target: cm, component: a, entry: {session: X, address: x}, by: another journal, sequence: 1000000}
  - confirm: {component: b, session: B1, address: b2}
  - expect:  {target: {cm: {a: {address: x}, b: {address: b1}}, other: {b: {address: b2}}}}
  - drop:    cm
  - expect:  {target: {cm: {a: {address: a1}}}}
`,
		"an instance that is frozen writes nothing": `
  - projector: stall
  - confirm: {component: a, session: A1, address: a2}
  - confirm: {component: b, session: B1, address: b2}
  - expect:  {target: {cm: {a: {address: a1}, b: {address: b1}}, other: {a: {address: a1}, b: {address: b1}}}}
  - projector: wake
  - expect:  {target: {cm: {a: {address: a2}, b: {address: b2}}, other: {a: {address: a2}, b: {address: b2}}}}
`,
		"whatever hangs is let go on": `
  - hold:    cm
  - confirm: {component: b, session: B1, address: b2}
  - confirm: {component: a, session: A1, address: a2}
  - expect:  {target: {cm: {a: {address: a1}, b: {address: b1}}}}
  - advance: 5s
  - let:     cm
  - expect:  {target: {cm: {a: {address: a2}, b: {address: b2}}}}
`,
		"an observer hears of every component": `
  - deaf:    cm
  - write:   {target: cm, component: a, entry: {session: X, address: x}, by: somebody}
  - write:   {target: cm, component: b, entry: null, by: somebody}
  - expect:  {target: {cm: {a: {address: x}, b: absent}}}
  - hear:    cm
  - expect:  {view: {a: {anomalies: [drift]}, b: {anomalies: [drift]}}, target: {cm: {a: {address: a1}, b: {address: b1}}}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, run(t, begin+steps, Options{}))
			require.NoError(t, run(t, begin+steps, Options{Backend: split{}}))
		})
	}
}

// picky is a backend that can't show everything.
type picky struct{}

func (picky) Check(spec journal.Target, components []string) error {
	if spec.Guarded || slices.Contains(components, "b") {
		return errors.New("not here")
	}
	return nil
}

func (picky) Open(context.Context, string, journal.Target) (Object, error) {
	return nil, errors.New("opened all the same")
}

func TestABackendRefusesWhatItCantExpressBeforeTheRun(t *testing.T) {
	const b = "  - grant: {component: b, candidate: n-1, session: B1}\n"
	for _, text := range []string{
		begin + b, strings.Replace(begin, "steps:", "policy: {authority: backend}\nsteps:", 1),
	} {
		require.NoError(t, run(t, text, Options{}))
		err := run(t, text, Options{Backend: picky{}})
		require.ErrorIs(t, err, ErrInexpressible)
		require.ErrorContains(t, err, "not here")
	}
	limited := strings.Replace(begin+b, "steps:", "targets: {cm: {components: [rest]}}\nsteps:", 1)
	require.ErrorContains(t, run(t, limited, Options{Backend: picky{}}), "opened all the same", "b is not to be shown there")
}
