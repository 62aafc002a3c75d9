package testenv_test

import (
	"testing"
	"time"
)

// await returns when the condition holds and fails the test when it doesn't within a minute.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !condition() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatal("the condition did not come to hold within a minute")
		}
	}
}
