package candidate

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot goes on while the machine is suspended: a lease does too.
func sinceBoot() clock {
	var probe unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &probe) != nil {
		return monotonic()
	}
	return func() time.Duration {
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
			return math.MaxInt64 // whoever can't tell the time holds nothing
		}
		return time.Duration(now.Nano())
	}
}
