package k8s

import (
	"errors"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Annotations of a Lease, which has no fields for them.
const (
	// SessionAnnotation is the session of the leader that a Lease shows.
	SessionAnnotation = "leadership-journal.io/session"

	// AddressAnnotation is where that leader can be reached.
	AddressAnnotation = "leadership-journal.io/address"

	// EpochAnnotation is the epoch of that leader's term, in decimal.
	EpochAnnotation = "leadership-journal.io/epoch"
)

var errNoCandidate = errors.New("a lease shows who leads, and the leader has no candidate")

// microTime is metav1.MicroTime's format.
const microTime = "2006-01-02T15:04:05.000000Z07:00"

// lease shows one component in a Lease. It is shown, not contended on: it has no leaseDurationSeconds.
type lease struct{ component string }

func (l lease) entries(x *excerpt) map[string]*journal.LeaderInfo {
	if x.Spec.Holder == "" {
		return nil
	}
	a := x.Metadata.Annotations
	return map[string]*journal.LeaderInfo{
		l.component: {Candidate: x.Spec.Holder, Session: a[SessionAnnotation], Address: a[AddressAnnotation]},
	}
}

func leaseHolder(o *unstructured.Unstructured) string {
	holder, _, err := unstructured.NestedString(o.Object, "spec", "holderIdentity")
	if err != nil {
		return ""
	}
	return holder
}

func (l lease) bare(o *unstructured.Unstructured, _ string) bool { return leaseHolder(o) == "" }

func (l lease) shows(o *unstructured.Unstructured, _ string, e *projector.Entry) bool {
	a := o.GetAnnotations()
	if e.Leader == nil {
		return leaseHolder(o) == "" && a[SessionAnnotation] == "" && a[AddressAnnotation] == ""
	}
	return leaseHolder(o) == e.Leader.Candidate && a[SessionAnnotation] == e.Leader.Session &&
		a[AddressAnnotation] == e.Leader.Address && a[EpochAnnotation] == strconv.FormatUint(e.Epoch, 10)
}

func (l lease) refuse(_ string, e *projector.Entry) error {
	if e.Leader != nil && e.Leader.Candidate == "" {
		return errNoCandidate
	}
	return nil
}

// set has leaseTransitions count the epochs that were shown here. The epoch itself would be no count, and does not fit.
func (l lease) set(o *unstructured.Unstructured, _ string, e *projector.Entry, now time.Time) {
	spec, _ := o.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		o.Object["spec"] = spec
	}
	at := now.UTC().Format(microTime)
	spec["acquireTime"], spec["renewTime"], spec["holderIdentity"] = at, at, ""
	shown := map[string]string{SessionAnnotation: "", AddressAnnotation: ""}
	transitions, had := spec["leaseTransitions"].(int64)
	if e.Leader != nil {
		spec["holderIdentity"] = e.Leader.Candidate
		epoch := strconv.FormatUint(e.Epoch, 10)
		if had && o.GetAnnotations()[EpochAnnotation] != epoch {
			transitions = min(transitions+1, math.MaxInt32)
		}
		shown = map[string]string{SessionAnnotation: e.Leader.Session, AddressAnnotation: e.Leader.Address, EpochAnnotation: epoch}
	}
	spec["leaseTransitions"] = transitions
	annotate(o, shown)
}
