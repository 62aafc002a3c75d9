package k8s

import (
	"errors"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Annotations of our own objects.
const (
	// SequenceAnnotation is the fence: the journal's sequence up to which the object shows the view, in decimal.
	SequenceAnnotation = "leadership-journal.io/sequence"

	// ProjectorAnnotation is the epoch of the projector that wrote last, in decimal.
	ProjectorAnnotation = "leadership-journal.io/projector"

	// SubjectAnnotation is what the object shows, <group> or <group>/<component>. No other is shown there.
	SubjectAnnotation = "leadership-journal.io/subject"
)

const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "journald"
)

// layout is how entries lie in an object.
type layout interface {
	// entries are the leaders that the object shows, by component. What can't be read is none.
	entries(x *excerpt) map[string]*journal.LeaderInfo

	// bare says that nothing at all stands where the component's entry belongs.
	bare(o *unstructured.Unstructured, component string) bool

	// shows says whether the object shows this entry to the letter.
	shows(o *unstructured.Unstructured, component string, e *projector.Entry) bool

	// refuse names the rule that keeps the layout from showing this entry, or is nil.
	refuse(component string, e *projector.Entry) error

	// set has the object show the entry, and touches nothing else.
	set(o *unstructured.Unstructured, component string, e *projector.Entry, now time.Time)
}

func layoutOf(spec journal.Target, component string) layout {
	switch {
	case spec.Kind == Lease:
		return lease{component}
	case spec.Layout == Flink:
		return configMap{flinkKeys{}}
	}
	return configMap{jsonKeys{}}
}

// fence is the sequence that an object shows; 0 where it has none, or one that can't be read.
func (x *excerpt) fence() uint64 {
	n, err := strconv.ParseUint(x.Metadata.Annotations[SequenceAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// stamp fences an object that is ours to fence.
func stamp(o *unstructured.Unstructured, doc *projector.Document, subject string) {
	annotate(o, map[string]string{
		SequenceAnnotation:  strconv.FormatUint(doc.Sequence, 10),
		ProjectorAnnotation: strconv.FormatUint(doc.Projector, 10),
		SubjectAnnotation:   subject,
	})
}

// annotate sets annotations, and removes those that are empty.
func annotate(o *unstructured.Unstructured, values map[string]string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	for name, value := range values {
		if value == "" {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	o.SetAnnotations(all)
}

var errNoAddress = errors.New("the leader has no address")
