package k8s

import "github.com/go-json-experiment/json"

// lockAnnotation is where client-go, fabric8 and Druid keep the record of an election on an object.
const lockAnnotation = "control-plane.alpha.kubernetes.io/leader"

// lockHolder is who holds the lock that lies on an object; empty where there is none, or nobody. The three write the
// other fields of the record in different ways (fabric8's duration is a number before 6.13 and ISO 8601 after it;
// Druid's times are not RFC 3339), so they are not looked at.
func (x *excerpt) lockHolder() string {
	record, ok := x.Metadata.Annotations[lockAnnotation]
	if !ok {
		return ""
	}
	var lock struct {
		Holder string `json:"holderIdentity"`
	}
	if err := json.Unmarshal([]byte(record), &lock); err != nil {
		return ""
	}
	return lock.Holder
}
