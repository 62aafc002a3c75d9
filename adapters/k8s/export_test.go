package k8s

import (
	"time"

	"k8s.io/client-go/rest"
)

// NewImpatientClient waits for d only where [NewClient] waits for many seconds.
func NewImpatientClient(config *rest.Config, opts Options, d time.Duration) (*Client, error) {
	return newClient(config, opts, patience{silence: d, pong: d, answer: d})
}
