package k8s

import (
	"time"

	"k8s.io/client-go/rest"
)

// NewAnxiousClient takes a connection for dead sooner than [NewClient], so that a test need not wait for long.
func NewAnxiousClient(config *rest.Config, opts Options, after, waits time.Duration) (*Client, error) {
	return newClient(config, opts, heartbeat{after, waits})
}
