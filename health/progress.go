package health

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Progress is the check of work that has to move on: read says how far it is, and what it says has to be another thing
// within so many runs. Any change counts, a fall too, since a worker that was restarted counts from nothing. What can't be
// read fails, and is not compared.
func Progress[T comparable](read func(context.Context) (T, error), within int) (Probe, error) {
	if err := errors.Join(
		must(read != nil, "there is nothing to read"),
		must(within >= 1, "%d runs without progress are less than 1", within),
	); err != nil {
		return nil, err
	}
	var last T
	still := -1 // runs in which nothing moved; -1: nothing was read yet
	return func(ctx context.Context) error {
		now, err := read(ctx)
		if err != nil {
			return err
		}
		if still < 0 || now != last {
			last, still = now, 0
			return nil
		}
		still++
		return must(still < within, "no progress: it has been %v for %d runs", last, still)
	}, nil
}

// Number reads a file that has one whole number in it.
func Number(path string) func(context.Context) (uint64, error) {
	return func(context.Context) (uint64, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s has no whole number in it: %.40q", path, text)
		}
		return n, nil
	}
}

// FileState is what changes when a file is written to.
type FileState struct {
	Size     int64
	Modified int64 // nanoseconds since 1970
}

// String is both in words.
func (s FileState) String() string {
	return fmt.Sprintf("%d bytes of %s", s.Size, time.Unix(0, s.Modified).UTC().Format(time.RFC3339Nano))
}

// Writes looks at a file's size and time.
func Writes(path string) func(context.Context) (FileState, error) {
	return func(context.Context) (FileState, error) {
		info, err := os.Stat(path)
		if err != nil {
			return FileState{}, err
		}
		return FileState{info.Size(), info.ModTime().UnixNano()}, nil
	}
}
