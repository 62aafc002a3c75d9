//go:build !linux

package health

import "os"

// forget has nothing to offer here: what is read back may come from memory.
func forget(*os.File) error { return nil }
