package client

import (
	"errors"

	"github.com/leadership-journal/journald/journal"
)

// Final says that trying again can't help: what was asked for was refused, and will be.
func Final(err error) bool { return errors.Is(err, journal.ErrInvalid) }
