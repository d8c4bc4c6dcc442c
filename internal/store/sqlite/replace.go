package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubeop/kubeop/internal/store/database"
)

// suffixes are those of the files of one database. A WAL or rollback journal is not bound to its database file: SQLite replays it into whatever has that name.
var suffixes = []string{"", "-wal", "-shm", "-journal"}

// SQLite's locks of a database file are on these bytes (os_unix.c: PENDING_BYTE, and 2+510 after it). In WAL mode each connection holds one of them until it is closed.
const lockedBytes, lockedLength = 0x40000000, 512

// Replace makes a new database, which fill fills, and puts it at the path only if fill returned nil. If files of a database are there already, it fails, unless they are to be set aside:
// then they get another name, as they are, and kept is that name. They may be broken. Replace fails if a program has the database open.
func Replace(path string, setAside bool, fill func(*database.DB) error) (kept string, err error) {
	found, err := filesOf(path)
	if err != nil {
		return "", err
	}
	if len(found) > 0 && !setAside {
		return "", fmt.Errorf("there is a store already, %s. Stop the manager, and set the files aside with --set-aside, which keeps them under another name", strings.Join(found, ", "))
	}
	if err := unused(path); err != nil {
		return "", err
	}
	made := path + ".new"
	if err := remove(made); err != nil { // An interrupted Replace left it.
		return "", err
	}
	defer func() { err = errors.Join(err, remove(made)) }()
	if err := build(made, fill); err != nil {
		return "", err
	}
	if kept, err = swap(made, path); err != nil {
		return "", err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("the store is restored, and the one from before is %q, but a loss of power may undo that: %w", kept, err)
	}
	return kept, nil
}

// build makes a database that is one file.
func build(path string, fill func(*database.DB) error) error {
	db, err := Connect(path)
	if err != nil {
		return err
	}
	// The last connection that closes writes the WAL into the file, and removes it.
	if err := errors.Join(fill(db), db.Close()); err != nil {
		return err
	}
	if found, err := filesOf(path); err != nil || len(found) != 1 {
		return errors.Join(fmt.Errorf("closing the new store did not write all of it into its file: there are %s", strings.Join(found, ", ")), err)
	}
	return nil
}

// swap gives the files at the path another name, which it returns, and their name to the file made. If it fails, all have the names that they had.
func swap(made, path string) (kept string, err error) {
	// A manager may have been started while the new file was filled.
	if err := unused(path); err != nil {
		return "", err
	}
	found, err := filesOf(path)
	if err != nil {
		return "", err
	}
	aside := path + "." + time.Now().UTC().Format("20060102T150405.000")
	for i, file := range found {
		if err := os.Rename(file, aside+strings.TrimPrefix(file, path)); err != nil {
			return "", errors.Join(fmt.Errorf("setting the store from before aside: %w", err), putBack(found[:i], path, aside))
		}
		kept = aside
	}
	if err := os.Rename(made, path); err != nil {
		return "", errors.Join(err, putBack(found, path, aside))
	}
	return kept, nil
}

func putBack(files []string, path, aside string) error {
	for _, file := range files {
		if err := os.Rename(aside+strings.TrimPrefix(file, path), file); err != nil {
			return fmt.Errorf("putting the store from before back, which is %s: %w", aside, err)
		}
	}
	return nil
}

// filesOf returns the files of a database that are there.
func filesOf(path string) (found []string, err error) {
	for _, suffix := range suffixes {
		switch _, err := os.Lstat(path + suffix); {
		case err == nil:
			found = append(found, path+suffix)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return found, nil
}

// remove removes the files of a database.
func remove(path string) error {
	for _, suffix := range suffixes {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// unused fails if a program has a database open: it would go on with the files under their new name. SQLite is not asked, because it can open no broken file, and changes what it opens.
// Closing the file gives up the locks that this process has on it, so this process may not have the database open.
func unused(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: lockedBytes, Len: lockedLength}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return fmt.Errorf("reading the locks of %s: %w", path, err)
	}
	if lock.Type != unix.F_UNLCK {
		return fmt.Errorf("a manager uses the store %s. Stop it first", path)
	}
	return nil
}

// syncFolder has the new name of a file outlive a loss of power.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
