package stream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	gib             = 1 << 30
	leastMaxStore   = 1 * gib
	mostMaxStore    = 64 * gib
	maxStoreFile    = "max-store"
	maxStoreComment = "bytes that the embedded server may store; raise it by configuration, never lower it"
)

// settleMaxStore is the size that the server's store may have. It is decided at the first start and kept beside the
// data, since a server refuses to open streams that are larger than its store; later it can only be raised.
func settleMaxStore(dir string, asked int64) (int64, error) {
	kept, err := readMaxStore(dir)
	if err != nil {
		return 0, err
	}
	switch {
	case kept > 0 && (asked == 0 || asked == kept):
		return kept, nil
	case asked > 0 && asked < kept:
		return 0, fmt.Errorf("MaxStore of %s is %d bytes and can't be lowered to %d: streams there may be larger", dir, kept, asked)
	case asked == 0:
		free, err := freeDisk(dir)
		if err != nil {
			return 0, err
		}
		asked = defaultMaxStore(free)
	}
	return asked, writeMaxStore(dir, asked)
}

// defaultMaxStore is half of the free disk in whole GiB.
func defaultMaxStore(free int64) int64 {
	return min(max(free/2/gib*gib, leastMaxStore), mostMaxStore)
}

func readMaxStore(dir string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, maxStoreFile)) //nolint:gosec // our own directory
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read MaxStore: %w", err)
	}
	number, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("read MaxStore: %s holds %q, not a number of bytes", filepath.Join(dir, maxStoreFile), number)
	}
	return n, nil
}

// writeMaxStore replaces the file as a whole, so that a crash leaves the old or the new one.
func writeMaxStore(dir string, n int64) error {
	f, err := os.CreateTemp(dir, maxStoreFile+"-*")
	if err != nil {
		return fmt.Errorf("keep MaxStore: %w", err)
	}
	_, err = fmt.Fprintf(f, "%d %s\n", n, maxStoreComment)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, maxStoreFile))
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("keep MaxStore: %w", errors.Join(err, removeIfThere(f.Name())))
	}
	return nil
}

func removeIfThere(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // our own directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
