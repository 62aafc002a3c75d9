package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup keeps a copy of all that is stored, for Restore, in the place of an earlier one. Both servers stop for it,
// and have started again when it returns.
func (k *Kubernetes) Backup() error {
	if err := k.whileStopped(func() error { return replace(k.backup(), k.stored()) }); err != nil {
		return fmt.Errorf("copying what Kubernetes stores: %w", err)
	}
	return nil
}

// Restore puts back what the last Backup kept, as a cluster's owner does after a disaster: all that was written since
// is gone, and revisions go on from the backup's, so that they come a second time. Both servers stop for it, and
// have started again when it returns.
func (k *Kubernetes) Restore() error {
	if err := k.whileStopped(func() error { return replace(k.stored(), k.backup()) }); err != nil {
		return fmt.Errorf("restoring what Kubernetes stored: %w", err)
	}
	return nil
}

func (k *Kubernetes) stored() string { return k.plane.ControlPlane.Etcd.DataDir }

func (k *Kubernetes) backup() string { return filepath.Join(k.reaper.dir, "backup") }

func (k *Kubernetes) whileStopped(do func() error) error {
	etcd := k.plane.ControlPlane.Etcd
	if err := k.StopAPIServer(); err != nil {
		return err
	}
	if err := etcd.Stop(); err != nil {
		return fmt.Errorf("stopping etcd: %w", err)
	}
	done := do()
	if err := etcd.Start(); err != nil {
		return errors.Join(done, fmt.Errorf("starting etcd again: %w", err))
	}
	return errors.Join(done, k.StartAPIServer())
}

// replace makes one directory a copy of another.
func replace(directory, by string) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	return os.CopyFS(directory, os.DirFS(by))
}
