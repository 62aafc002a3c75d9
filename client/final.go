package client

import (
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/leadership-journal/journald/journal"
)

// Final says that trying again can't help: what was asked for is invalid or not allowed, or the journal has lost records,
// and will be so until somebody sees to it. What was not answered, came too late or found no room may succeed later.
func Final(err error) bool {
	if r, ok := errors.AsType[*refusal](err); ok && r.final() {
		return true
	}
	for _, final := range []error{
		journal.ErrInvalid, journal.ErrHole, errClosed,
		nats.ErrAuthorization, nats.ErrPermissionViolation, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}
