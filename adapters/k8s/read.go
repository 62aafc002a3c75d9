package k8s

import (
	"context"

	"github.com/leadership-journal/journald/projector"
)

// Read implements [projector.Target]. An object that shows all components is read once. What is missing has the
// revision at which it was missing.
func (t *target) Read(ctx context.Context, components []string) ([]projector.Observation, error) {
	seen := map[string]sight{} // by object
	shown := make([]projector.Observation, 0, len(components))
	for _, component := range components {
		o := t.unknown(component)
		s, ok := seen[o.component]
		if !ok {
			v, _, err := o.list(ctx)
			if err != nil {
				return nil, classifyRead(err)
			}
			s = o.see(v)
			seen[o.component] = s
		}
		shown = append(shown, projector.Observation{
			Component: component, Revision: s.revision, Sequence: s.sequence, Entry: s.entries[component], Holder: s.holder,
		})
	}
	return shown, nil
}

// unknown is the object that shows a component, without anything that is known of it.
func (t *target) unknown(component string) *object {
	if !t.PerComponent() {
		component = ""
	}
	return newObject(t, component)
}
