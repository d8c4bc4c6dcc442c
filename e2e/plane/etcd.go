package plane

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Snapshot copies the database files, as a disk backup does.
func (p Plane) Snapshot(to string) error {
	if err := p.Signal("etcd", syscall.SIGSTOP); err != nil {
		return err
	}
	return errors.Join(os.CopyFS(to, os.DirFS(p.etcd())), p.Signal("etcd", syscall.SIGCONT))
}

// Restore replaces the database with a snapshot. It restarts the components that know a later state: the API server and the named
// components. It does not wait for them.
func (p Plane) Restore(snapshot string, components ...string) error {
	fresh, old := p.etcd()+".restored", p.etcd()+".before"
	if err := errors.Join(os.CopyFS(fresh, os.DirFS(snapshot)), private(fresh)); err != nil {
		return err
	}
	// Replace the database within the second before etcd restarts.
	if err := errors.Join(p.Signal("etcd", syscall.SIGKILL), os.Rename(p.etcd(), old), os.Rename(fresh, p.etcd())); err != nil {
		return err
	}
	for _, component := range append([]string{"kube-apiserver"}, components...) {
		if err := p.Signal(component, syscall.SIGKILL); err != nil {
			return err
		}
	}
	return os.RemoveAll(old)
}

// private sets the directory mode that etcd requires.
func private(root string) error {
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	})
}

func (p Plane) etcd() string { return filepath.Join(p.Dir, "etcd") }
