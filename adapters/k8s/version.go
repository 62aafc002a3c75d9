package k8s

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubejson "k8s.io/apimachinery/pkg/util/json"
)

// version is an object at one moment. Most that a watch sees are never written upon, and somebody's renewals come all
// the time, so the whole is decoded only for a push.
type version struct {
	excerpt
	revision uint64
	glimpsed bool                       // it has no text, though there is an object: nothing can be written upon it
	text     jsontext.Value             // nil: there is no object
	object   *unstructured.Unstructured // see decode; its content must not be changed
}

// excerpt is what concerns leadership in an object of any kind, or what is said in its place.
type excerpt struct {
	Metadata struct {
		Revision    string            `json:"resourceVersion"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Data jsontext.Value `json:"data"` // a ConfigMap's
	Spec struct {
		Holder string `json:"holderIdentity"`
	} `json:"spec"` // a Lease's
	refusal
}

// refusal is a Status, which comes in the place of an object where a watch fails.
type refusal struct {
	Code    int32                 `json:"code"`
	Reason  metav1.StatusReason   `json:"reason"`
	Message string                `json:"message"`
	Details *metav1.StatusDetails `json:"details"`
}

// trusting has no duplicate names be looked for, which is a fifth of the cost of reading: API servers write none.
func trusting() jsontext.Options { return jsontext.AllowDuplicateNames(true) }

// newVersion reads the API server's text of an object, and keeps it.
func newVersion(text jsontext.Value) (*version, error) {
	v := &version{}
	if err := json.Unmarshal(text, v, trusting()); err != nil {
		return nil, fmt.Errorf("decode an object: %w", err)
	}
	var err error
	v.revision, err = parseRevision(v.Metadata.Revision)
	return v, err
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom]. It looks at the text once where that is not kept, else twice.
func (v *version) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if v.glimpsed {
		return json.UnmarshalDecode(d, &v.excerpt)
	}
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	v.text = text.Clone()
	return json.Unmarshal(v.text, &v.excerpt, trusting())
}

// decode has the whole object at hand, where there is one. It is called by one goroutine at a time.
func (v *version) decode(k kind) error {
	if v.text == nil || v.object != nil {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err := kubejson.Unmarshal(v.text, &o.Object); err != nil {
		return fmt.Errorf("decode an object: %w", err)
	}
	o.SetAPIVersion(k.version.String()) // those of a list don't say it
	o.SetKind(k.object)
	v.object = o
	return nil
}

// parseRevision reads a resourceVersion, which is a number that rises (KEP-5504).
func parseRevision(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number", s)
	}
	return n, nil
}
