//go:build darwin || freebsd || linux

package health

import "golang.org/x/sys/unix"

// freeOf asks the file system. A frozen one answers; one whose server or device is gone may hang.
func freeOf(path string) (free, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return free{}, err
	}
	available := uint64(max(s.Bavail, 0)) //nolint:unconvert // types differ between systems
	return free{
		space:  share(available, uint64(s.Blocks)-uint64(s.Bfree)+available), //nolint:unconvert // types differ between systems
		inodes: share(uint64(s.Ffree), uint64(s.Files)),                      //nolint:unconvert // types differ between systems
	}, nil
}
