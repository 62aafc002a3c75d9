package candidate

import "time"

// clock is the time that has passed since a moment of its own choice. Nothing can set it.
type clock func() time.Duration

// monotonic is the clock of the Go runtime. It stands still while a machine is suspended.
func monotonic() clock {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
