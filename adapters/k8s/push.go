package k8s

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leadership-journal/journald/projector"
)

var (
	errFlinkOwn = errors.New("it is missing, and only Flink may create it: made without its lock, it would keep Flink from ever electing")
	errMissing  = errors.New("the guarded object is missing")
	errLock     = errors.New("the lock is not held by the entry's candidate")
	errTheirs   = errors.New("the system has an entry of its own there")
	errKept     = errors.New("a guarded object is repaired only, nothing is taken down from it")
)

// push compares, and writes where something differs.
func (o *object) push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	o.expect(doc)
	was, err := o.current(ctx, doc.Fresh)
	if err != nil {
		return projector.Receipt{}, err
	}
	p := plan{object: o, doc: doc, was: was}
	if err := p.make(); err != nil {
		return projector.Receipt{}, fmt.Errorf("%s: %w", &o.resource, err)
	}
	receipt := projector.Receipt{Revision: was.revision, Rejected: p.rejected}
	if !p.write {
		return receipt, nil
	}
	now, err := o.replace(ctx, was, p.next())
	if err != nil {
		return projector.Receipt{}, err
	}
	receipt.Revision, receipt.Wrote, receipt.Changed = now.revision, true, p.changed
	return receipt, nil
}

// plan is what a document asks of a version.
type plan struct {
	object   *object
	doc      *projector.Document
	was      *version
	changed  []string // sorted
	rejected map[string]error
	write    bool
}

// make finds what has to be changed, or why nothing may be.
func (p *plan) make() error {
	if p.guarded() {
		return p.makeGuarded()
	}
	if err := p.allowed(); err != nil {
		return err
	}
	for _, component := range slices.Sorted(maps.Keys(p.doc.Entries)) {
		e := p.doc.Entries[component]
		if err := p.object.layout.refuse(component, &e); err != nil {
			p.reject(component, err)
		} else if !p.shows(component, &e) {
			p.changed = append(p.changed, component)
		}
	}
	p.write = len(p.accepted()) > 0 && (len(p.changed) > 0 || p.was.object == nil || p.was.fence() != p.doc.Sequence)
	return nil
}

func (p *plan) guarded() bool { return p.doc.Guarded || p.object.target.spec.Guarded }

// allowed says whether an object of our own may be written at all.
func (p *plan) allowed() error {
	o := p.object
	if p.was.object == nil {
		if o.target.spec.Layout == Flink && strings.HasSuffix(o.name, flinkOwnSuffix) {
			return errFlinkOwn
		}
		return nil
	}
	if shown := p.was.fence(); shown > p.doc.Sequence {
		return fmt.Errorf("%w: %d, not %d", projector.ErrSuperseded, shown, p.doc.Sequence)
	}
	if subject := p.was.Metadata.Annotations[SubjectAnnotation]; subject != "" && subject != o.subject {
		return fmt.Errorf("%w: it shows %s already, and can't show %s too", projector.ErrPermanent, subject, o.subject)
	}
	return nil
}

// makeGuarded finds what may be put back. What the document does not expect is a change that its observer will tell
// of, so it is a conflict.
func (p *plan) makeGuarded() error {
	if p.was.object == nil {
		return fmt.Errorf("%w: %w", projector.ErrConflict, errMissing)
	}
	holder := p.was.lockHolder()
	for _, component := range slices.Sorted(maps.Keys(p.doc.Entries)) {
		e := p.doc.Entries[component]
		refused := p.object.layout.refuse(component, &e)
		switch {
		case refused != nil:
			p.reject(component, refused)
		case p.shows(component, &e):
		case e.Leader == nil:
			p.reject(component, errKept)
		case !p.object.layout.bare(p.was.object, component):
			return fmt.Errorf("%s: %w: %w", component, projector.ErrConflict, errTheirs)
		case holder == "" || holder != e.Leader.Candidate:
			return fmt.Errorf("%s: %w: %w", component, projector.ErrConflict, errLock)
		default:
			p.changed = append(p.changed, component)
		}
	}
	p.write = len(p.changed) > 0
	return nil
}

func (p *plan) shows(component string, e *projector.Entry) bool {
	if p.was.object == nil {
		return e.Leader == nil
	}
	return p.object.layout.shows(p.was.object, component, e)
}

func (p *plan) reject(component string, err error) {
	if p.rejected == nil {
		p.rejected = map[string]error{}
	}
	p.rejected[component] = err
}

// next is the version that shows the document, everything else as it was.
func (p *plan) next() *unstructured.Unstructured {
	o, next := p.object, p.object.blank()
	if p.was.object != nil {
		next = p.was.object.DeepCopy()
	}
	for _, component := range p.accepted() { // those that it shows too: a lease's times are of the last write
		e := p.doc.Entries[component]
		o.layout.set(next, component, &e, o.client.opts.Now())
	}
	if !p.guarded() {
		stamp(next, p.doc, o.subject)
	}
	return next
}

// accepted are the components that the layout can hold.
func (p *plan) accepted() []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(p.doc.Entries)), func(component string) bool {
		return p.rejected[component] != nil
	})
}

// blank is a new object of our own.
func (o *object) blank() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(o.kind.version.String())
	u.SetKind(o.kind.object)
	u.SetNamespace(o.namespace)
	u.SetName(o.name)
	u.SetLabels(map[string]string{managedByLabel: managedBy})
	return u
}
