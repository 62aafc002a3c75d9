// Package loopdisk makes real disks for tests that break them: small ext4 file systems on loop devices, which run full,
// out of inodes, read-only, or freeze, so that whoever writes to them hangs in the kernel.
//
// It takes root, and Linux. A disk is unmounted and its image removed at the end of its test, and also when the tests are
// killed: a process of its own sees to that. A frozen disk is thawed by another one after a time that was set before, whatever
// happens, since the tests may hang in it themselves, and with them everything that waits for their end.
package loopdisk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// keepScript mounts the image in the directory $1, says so, and takes everything away with the end of its input, which
// comes with the end of its owner.
const keepScript = `trap "" HUP INT TERM
mount -o loop "$1/image" "$1/disk" && echo done && cat > /dev/null
fsfreeze --unfreeze "$1/disk" 2> /dev/null
umount "$1/disk" || umount --lazy "$1/disk"
rm -rf "$1"`

// freezeScript freezes the file system $1, says so, and thaws it with the end of its input, at the latest after $2 seconds.
const freezeScript = `trap "" HUP INT TERM
fsfreeze --freeze "$1" && echo done && timeout -s KILL "$2" cat > /dev/null
fsfreeze --unfreeze "$1"`

// Disk is a mounted file system. Its methods are for one goroutine at a time.
type Disk struct {
	tb     testing.TB
	dir    string
	keeper *helper
	frozen *helper // nil: it is not
}

// New makes a file system of so many MiB with so many inodes, empty but for what ext4 itself has there. All of its space
// may be used by everybody.
func New(tb testing.TB, mebibytes, inodes int) *Disk {
	tb.Helper()
	for _, program := range []string{"mkfs.ext4", "mount", "umount", "fsfreeze", "timeout"} {
		if _, err := exec.LookPath(program); err != nil {
			tb.Fatalf("a disk to break takes %s: apt-get install -y e2fsprogs mount util-linux coreutils", program)
		}
	}
	dir, err := os.MkdirTemp("", "journald-loopdisk-") //nolint:usetesting // it is removed after it was unmounted, by whoever does that
	if err != nil {
		tb.Fatalf("making a disk: %v", err)
	}
	d := &Disk{tb: tb, dir: dir}
	if err := d.mount(mebibytes, inodes); err != nil {
		tb.Fatalf("making a disk: %v (it takes root, and a kernel with loop devices and ext4)", errors.Join(err, os.RemoveAll(dir)))
	}
	tb.Cleanup(d.remove)
	return d
}

func (d *Disk) mount(mebibytes, inodes int) (err error) {
	image := filepath.Join(d.dir, "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, int64(mebibytes)<<20); err != nil {
		return err
	}
	if err := os.Mkdir(d.Path(), 0o700); err != nil {
		return err
	}
	if err := run("mkfs.ext4", "-q", "-F", "-m", "0", "-N", strconv.Itoa(inodes), image); err != nil {
		return err
	}
	d.keeper, err = start(keepScript, d.dir)
	return err
}

func (d *Disk) remove() {
	d.Thaw()
	if err := d.keeper.end(); err != nil {
		d.tb.Errorf("removing a disk: %v", err)
	}
	if _, err := os.Stat(d.dir); !errors.Is(err, os.ErrNotExist) {
		d.tb.Errorf("removing a disk: %s is there still (%v)", d.dir, err)
	}
}

// Path is where the disk is mounted.
func (d *Disk) Path() string { return filepath.Join(d.dir, "disk") }

func (d *Disk) filler() string { return filepath.Join(d.Path(), "filler") }

// Fill writes a file until there is no space left, nor any that others free in the next moments.
func (d *Disk) Fill() {
	d.tb.Helper()
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		err = exhaust(func() error { return grow(f) })
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		d.tb.Fatalf("filling a disk: %v", err)
	}
}

// grow writes as much at once as there is room for. Where there is none the rest is synced, which frees what was reserved
// for it.
func grow(f *os.File) (err error) {
	for size := 256 << 10; size > 0; size /= 2 {
		if _, err = f.Write(make([]byte, size)); !errors.Is(err, syscall.ENOSPC) {
			return err
		}
	}
	return errors.Join(err, f.Sync())
}

// TakeInodes makes files until there is no inode left, nor any that others free in the next moments.
func (d *Disk) TakeInodes() {
	d.tb.Helper()
	err, n := os.MkdirAll(d.filler(), 0o700), 0
	if err == nil {
		err = exhaust(func() error {
			n++
			return os.WriteFile(filepath.Join(d.filler(), strconv.Itoa(n)), nil, 0o600)
		})
	}
	if err != nil {
		d.tb.Fatalf("taking the inodes of a disk: %v", err)
	}
}

const (
	moment  = 10 * time.Millisecond
	moments = 10
	longest = 20 * time.Second // of anything that is tried again
)

// exhaust takes something until it has been out of space for a while: what a writer of the moment has comes free.
func exhaust(take func() error) error {
	for left := moments; left > 0; {
		switch err := take(); {
		case err == nil:
			left = moments
		case errors.Is(err, syscall.ENOSPC):
			left--
			<-time.After(moment)
		default:
			return err
		}
	}
	return nil
}

// Empty undoes Fill and TakeInodes.
func (d *Disk) Empty() {
	d.tb.Helper()
	if err := os.RemoveAll(d.filler()); err != nil {
		d.tb.Fatalf("emptying a disk: %v", err)
	}
}

// ReadOnly remounts the disk so that nobody may write to it, as soon as nobody does.
func (d *Disk) ReadOnly() { d.remount("ro") }

// Writable remounts it so that everybody may again.
func (d *Disk) Writable() { d.remount("rw") }

func (d *Disk) remount(how string) {
	d.tb.Helper()
	began := time.Now()
	for {
		err := run("mount", "-o", "remount,"+how, d.Path())
		if err == nil {
			return
		}
		if time.Since(began) > longest {
			d.tb.Fatalf("remounting a disk: %v", err)
		}
		<-time.After(moment)
	}
}

// Freeze has whoever writes to the disk hang until Thaw, and at most for so long, in whole seconds. What hangs can't even be
// killed; who reads does not notice.
func (d *Disk) Freeze(atMost time.Duration) {
	d.tb.Helper()
	var err error
	if d.frozen, err = start(freezeScript, d.Path(), strconv.Itoa(int(atMost/time.Second))); err != nil {
		d.tb.Fatalf("freezing a disk: %v", err)
	}
}

// Thaw ends Freeze, if it has not ended.
func (d *Disk) Thaw() {
	d.tb.Helper()
	if d.frozen == nil {
		return
	}
	if err := d.frozen.end(); err != nil {
		d.tb.Errorf("thawing a disk: %v", err)
	}
	d.frozen = nil
}

func run(program string, args ...string) error {
	if out, err := exec.CommandContext(context.Background(), program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// helper is a script that does something, says so, and undoes it with the end of its input.
type helper struct {
	cmd   *exec.Cmd
	input io.Closer
	said  bytes.Buffer // by the script to standard error
}

// start returns when the script has done what it is for.
func start(script string, args ...string) (*helper, error) {
	h := &helper{cmd: exec.CommandContext(context.Background(), "/bin/sh", append([]string{"-c", script, "loopdisk"}, args...)...)}
	h.cmd.Stderr = &h.said
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends the tests does not end it
	output, err := h.cmd.StdoutPipe()
	if err == nil {
		h.input, err = h.cmd.StdinPipe()
	}
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(output, make([]byte, len("done\n"))); err != nil {
		return nil, fmt.Errorf("%w: %s", errors.Join(h.end()), h.said.Bytes())
	}
	return h, nil
}

// end has the script undo what it did.
func (h *helper) end() error {
	closed := h.input.Close()
	if err := errors.Join(closed, h.cmd.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, h.said.Bytes())
	}
	return nil
}
