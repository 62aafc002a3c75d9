//go:build !unix

package stream

import (
	"errors"
	"fmt"
)

// lockDir refuses: without a lock that ends with the process, two servers could write the same files.
func lockDir(dir string) (func() error, error) {
	return nil, fmt.Errorf("lock %s: an embedded server needs a Unix system; use one elsewhere by URL: %w", dir, errors.ErrUnsupported)
}

func freeDisk(dir string) (int64, error) {
	return 0, fmt.Errorf("ask for the free space of %s: %w", dir, errors.ErrUnsupported)
}
