package k8s

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/leadership-journal/journald/journal"
)

const (
	componentPattern = "{component}"
	flinkOwnSuffix   = "-cluster-config-map" // of the object in which Flink's own elector holds its lock
)

// Validate says why a target can't be served, naming the field; nil: it can.
func Validate(group string, spec journal.Target) error {
	if err := validate(group, spec); err != nil {
		return fmt.Errorf("target %s: %w", spec.Name, err)
	}
	return nil
}

func validate(group string, spec journal.Target) error {
	if _, ok := kindOf(spec.Kind); !ok {
		return fmt.Errorf("kind %q is none of %s, %s", spec.Kind, ConfigMap, Lease)
	}
	if spec.Path != "" {
		return errors.New("path is for ZooKeeper; a Kubernetes target has namespace and object")
	}
	if err := validateLayout(spec); err != nil {
		return err
	}
	if spec.Namespace == "" {
		return errors.New("namespace is missing")
	}
	if problems := validation.IsDNS1123Label(spec.Namespace); len(problems) > 0 {
		return fmt.Errorf("namespace %q: %s", spec.Namespace, problems[0])
	}
	return validateObject(group, spec)
}

func validateLayout(spec journal.Target) error {
	switch {
	case spec.Kind == Lease && spec.Layout != "":
		return fmt.Errorf("layout %q: a lease has one layout only; leave it out", spec.Layout)
	case spec.Kind == Lease && spec.Guarded:
		return errors.New("guarded: a lease is shown, not guarded; no elector may contend on it")
	case spec.Kind == ConfigMap && spec.Layout == "":
		return fmt.Errorf("layout is missing; it is %s or %s", Flink, JSON)
	case spec.Kind == ConfigMap && spec.Layout != Flink && spec.Layout != JSON:
		return fmt.Errorf("layout %q is none of %s, %s", spec.Layout, Flink, JSON)
	}
	return nil
}

func validateObject(group string, spec journal.Target) error {
	switch {
	case spec.Object == "" && spec.Kind != Lease:
		return errors.New("object is missing; it is the ConfigMap's name")
	case spec.Object != "" && spec.Kind == Lease && !strings.Contains(spec.Object, componentPattern) && len(spec.Components) != 1:
		return fmt.Errorf("object %q: a lease shows one component; have %s in it, or list one component", spec.Object, componentPattern)
	}
	name := objectName(group, spec, "x")
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("object %q: %s", name, problems[0])
	}
	return nil
}

// perComponent says whether each component has an object of its own.
func perComponent(spec journal.Target) bool {
	return spec.Kind == Lease || strings.Contains(spec.Object, componentPattern)
}

// objectName is where a component is shown. Names of components that differ only in what an object's name can't have
// fall together; the subject that the object carries tells them apart.
func objectName(group string, spec journal.Target, component string) string {
	if spec.Object == "" {
		return sanitize(group) + "-" + sanitize(component)
	}
	return strings.ReplaceAll(spec.Object, componentPattern, sanitize(component))
}

// sanitize makes a name that is lower case, with - for whatever an object's name can't have.
func sanitize(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '.':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
}
