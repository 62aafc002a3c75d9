package health

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Disk looks at directories: each is there, has space and files left, and takes a write.
type Disk struct {
	Paths []string // directories, at least one

	// FreePercent is the least share of the space that has to be free for users that are not root, as df counts it: 0 to
	// less than 100.
	FreePercent float64

	// FreeInodesPercent is the least share of the files that can be made. File systems without a limit have all of them free.
	FreeInodesPercent float64

	// SkipWrite leaves the write probe out: a file of a few kilobytes, written to the device, read back, compared and deleted.
	// Files that earlier probes could not delete, since they hung or their process was killed, are deleted too.
	SkipWrite bool
}

// Probe is the check of these directories. Its error names every fault of each, and it refuses settings that no disk can
// meet or miss.
func (d Disk) Probe() (Probe, error) {
	errs := []error{
		must(len(d.Paths) > 0, "there are no paths to look at"),
		percent("free space", d.FreePercent),
		percent("free inodes", d.FreeInodesPercent),
	}
	for _, path := range d.Paths {
		errs = append(errs, must(path != "", "a path is empty"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	dirs := make([]*directory, len(d.Paths))
	for i, path := range d.Paths {
		dirs[i] = &directory{Disk: d, path: path, sweep: true}
	}
	return func(ctx context.Context) error {
		var errs []error
		for _, dir := range dirs {
			errs = append(errs, dir.probe(ctx))
		}
		return errors.Join(errs...)
	}, nil
}

func percent(what string, p float64) error {
	return must(0 <= p && p < 100, "%s of at least %v percent is not between 0 and less than 100", what, p)
}

// directory is one that is looked at.
type directory struct {
	Disk
	path  string
	sweep bool // files of earlier probes may be there
}

func (d *directory) probe(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s was not looked at: %w", d.path, context.Cause(ctx))
	}
	switch info, err := os.Stat(d.path); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s does not exist", d.path)
	case err != nil:
		return fmt.Errorf("look at the directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", d.path)
	}
	errs := []error{d.space()}
	if !d.SkipWrite {
		errs = append(errs, d.write(ctx))
	}
	return errors.Join(errs...)
}

func (d *directory) space() error {
	if d.FreePercent == 0 && d.FreeInodesPercent == 0 {
		return nil
	}
	free, err := freeOf(d.path)
	if err != nil {
		return fmt.Errorf("ask for the free space of %s: %w", d.path, err)
	}
	return errors.Join(
		must(free.space >= d.FreePercent, "%s has %.1f %% of its space free, less than %v %%", d.path, free.space, d.FreePercent),
		must(free.inodes >= d.FreeInodesPercent, "%s has %.1f %% of its inodes free, less than %v %%", d.path, free.inodes,
			d.FreeInodesPercent),
	)
}

// free is what is left of a file system, in percent.
type free struct{ space, inodes float64 }

// share is a part of a whole in percent. Of nothing there is everything left: it has no limit.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}
