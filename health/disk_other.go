//go:build !darwin && !freebsd && !linux

package health

import (
	"errors"
	"fmt"
)

// freeOf is not known for this system.
func freeOf(string) (free, error) {
	return free{}, fmt.Errorf("this system does not say: %w; set both percentages to 0", errors.ErrUnsupported)
}
