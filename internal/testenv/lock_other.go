//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package testenv

import (
	"context"
	"errors"
	"fmt"
)

// lockFile refuses: without a lock that dies with its process, two builds could undo each other.
func lockFile(context.Context, string) (unlock func(), err error) {
	return nil, fmt.Errorf("locking the cache of test binaries on this system: %w", errors.ErrUnsupported)
}
