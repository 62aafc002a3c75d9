package zk

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leadership-journal/journald/journal"
)

// The layouts.
const (
	Flink = "flink" // <path>/connection_info, as Flink's retrieval services read it
	Latch = "latch" // <path>/_c_<uuid>-latch-0000000000, as Curator's LeaderLatch.getLeader reads it
	JSON  = "json"  // <path>, the leader info
)

const (
	componentPattern = "{component}"
	fenceRoot        = "/leadership-journal" // of our own bookkeeping
	connectionInfo   = "connection_info"
)

func layouts() []string { return []string{Flink, Latch, JSON} }

// Validate says why a target can't be served, naming the field; nil: it can.
func Validate(group string, spec journal.Target) error {
	if err := validate(spec); err != nil {
		return fmt.Errorf("target %s: %w", spec.Name, err)
	}
	if err := validatePath(fencePath(group, spec, "x")); err != nil {
		return fmt.Errorf("target %s: its fence would be at %w", spec.Name, err)
	}
	return nil
}

func validate(spec journal.Target) error {
	switch {
	case spec.Kind != Kind:
		return fmt.Errorf("kind %q is not %s", spec.Kind, Kind)
	case spec.Namespace != "" || spec.Object != "":
		return errors.New("namespace and object are for Kubernetes; a ZooKeeper target has a path")
	case spec.Layout == "":
		return fmt.Errorf("layout is missing; it is one of %s", strings.Join(layouts(), ", "))
	case !slices.Contains(layouts(), spec.Layout):
		return fmt.Errorf("layout %q is none of %s", spec.Layout, strings.Join(layouts(), ", "))
	case spec.Guarded:
		return errors.New("guarded: a znode of a live election can't be repaired by others without harm to it; observe it, with observe: true")
	}
	return validateTargetPath(spec)
}

func validateTargetPath(spec journal.Target) error {
	if spec.Path == "" {
		return errors.New("path is missing")
	}
	named := strings.Contains(spec.Path, componentPattern)
	switch {
	case !named && len(spec.Components) != 1:
		return fmt.Errorf("path %q: a znode shows one component; have %s in it, or list one component", spec.Path, componentPattern)
	case named && spec.Observe && len(spec.Components) == 0:
		return fmt.Errorf("components is missing: what is only observed at %s has to be listed", spec.Path)
	}
	at := strings.ReplaceAll(spec.Path, componentPattern, "x")
	if err := validatePath(at); err != nil {
		return fmt.Errorf("path %w", err)
	}
	if at == fenceRoot || strings.HasPrefix(at, fenceRoot+"/") {
		return fmt.Errorf("path %q: below %s is journald's own bookkeeping, which readers must not meet", spec.Path, fenceRoot)
	}
	return nil
}

// validatePath holds ZooKeeper's own rules, as its PathUtils has them.
func validatePath(p string) error {
	switch {
	case !strings.HasPrefix(p, "/"):
		return fmt.Errorf("%q does not begin with /", p)
	case p == "/":
		return fmt.Errorf("%q is the root", p)
	case p == "/zookeeper" || strings.HasPrefix(p, "/zookeeper/"):
		return fmt.Errorf("%q is ZooKeeper's own", p)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, forbidden):
		return fmt.Errorf("%q has a character that ZooKeeper does not allow", p)
	case path.Clean(p) != p:
		return fmt.Errorf("%q has a part that is empty, . or .. in it", p)
	}
	return nil
}

func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff
}

// nodePath is where a component's entry lies: a directory in layout latch, a node in the others.
func nodePath(spec journal.Target, component string) string {
	if spec.Layout != Flink {
		return strings.ReplaceAll(spec.Path, componentPattern, component)
	}
	at := strings.ReplaceAll(spec.Path, componentPattern, flinkID(component))
	return path.Join(strings.TrimSuffix(at, "/"+connectionInfo), connectionInfo)
}

// flinkID is what Flink calls a component in ZooKeeper, of what it calls it in Kubernetes.
func flinkID(component string) string {
	switch component {
	case "resourcemanager":
		return "resource_manager"
	case "restserver":
		return "rest_server"
	}
	return component
}

// fencePath is where a component's fence lies, outside of what readers list.
func fencePath(group string, spec journal.Target, component string) string {
	p := fenceRoot + "/" + group + "/" + spec.Name
	if strings.Contains(spec.Path, componentPattern) {
		p += "/" + component
	}
	return p
}

// validateComponent says why a znode can't be named after a component.
func validateComponent(component string) error {
	if strings.Contains(component, "/") {
		return fmt.Errorf("component %q: the name of a znode can't have a /", component)
	}
	return nil
}
