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

// suffixes are the suffixes of the files of a database. A WAL or rollback journal is not bound to its database file: SQLite replays it into any file
// with that name.
var suffixes = []string{"", "-wal", "-shm", "-journal"}

// SQLite locks these bytes of a database file (os_unix.c: PENDING_BYTE, and 2+510 after it). In WAL mode each connection locks one of them until it is
// closed.
const lockedBytes, lockedLength = 0x40000000, 512

// Replace creates a new database, which fill fills, and puts it at the path only if fill returned nil. If the path has a database, Replace fails
// unless setAside is true: then it renames the files of that database, which may be broken, and kept is the new name. Replace fails if a program has
// the database open.
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
	if err := remove(made); err != nil { // A Replace that was interrupted may have left it.
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

// build creates a database that is a single file.
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

// swap renames the files at the path, moves the new file there, and returns the new name of the old ones. If it fails, all files have their old names.
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

// filesOf returns the existing files of a database.
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

// unused fails if a program has a database open: that program would go on with the renamed files. It does not ask SQLite, which cannot open a broken
// file, and changes a file that it opens. Closing the file releases the locks of this process on it, so this process must not have the database open.
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

// syncFolder makes a renamed file survive a power failure.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
