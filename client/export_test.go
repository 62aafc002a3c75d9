package client

import "time"

// SetSilence has a stream count as dead sooner, so that a test need not wait for long.
func SetSilence(c Client, d time.Duration) {
	if c, ok := c.(*overHTTP); ok {
		c.silence = d
	}
}
