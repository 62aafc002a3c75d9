//go:build !linux

package candidate

// sinceBoot goes on while the machine is suspended where the system has such a clock.
func sinceBoot() clock { return monotonic() }
