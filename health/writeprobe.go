package health

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	probePrefix = ".journald-probe-" // and what nobody can foresee
	probeSize   = 4096               // more than what file systems keep beside a file's name
	sweepBatch  = 1024
)

// write has the directory take a file. Several processes may do that in one directory: each deletes what it finds of the
// others, and none minds that its own is gone.
func (d *directory) write(ctx context.Context) (err error) {
	if d.sweep {
		if err := d.sweepUp(ctx); err != nil {
			return fmt.Errorf("delete what earlier write probes left: %w", err)
		}
		d.sweep = false
	}
	text := make([]byte, probeSize)
	_, _ = rand.Read(text) // never fails
	path := filepath.Join(d.path, probePrefix+rand.Text())
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_SYNC, 0o600)
	if err != nil {
		return fmt.Errorf("write probe: %w", err)
	}
	defer func() {
		removed := gone(os.Remove(path))
		d.sweep = removed != nil
		if err = errors.Join(err, f.Close(), removed); err != nil {
			err = fmt.Errorf("write probe: %w", err)
		}
	}()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return readBack(f, text)
}

// readBack compares what the device has with what was written, where the system can be told to forget what it keeps in
// memory.
func readBack(f *os.File, want []byte) error {
	if err := forget(f); err != nil {
		return fmt.Errorf("have %s read from the device: %w", f.Name(), err)
	}
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 0); err != nil {
		return fmt.Errorf("read %s back: %w", f.Name(), err)
	}
	return must(bytes.Equal(got, want), "%s reads otherwise than it was written", f.Name())
}

// sweepUp deletes the files of earlier probes. Those of other users stay where the directory does not let them be deleted.
func (d *directory) sweepUp(ctx context.Context) error {
	dir, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	for ctx.Err() == nil {
		names, err := dir.Readdirnames(sweepBatch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if !strings.HasPrefix(name, probePrefix) {
				continue
			}
			if err := gone(os.Remove(filepath.Join(d.path, name))); err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// gone is the error of a removal, but that there was nothing to remove.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
