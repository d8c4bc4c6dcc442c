package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kubeop/kubeop/internal/store/database"
)

// Replace makes a new file, which fill fills. The file is at the path only if fill returned nil. One that is there already is an error, unless it is to be set aside: then it is kept, and the new name of it
// returned. A manager that uses it has to be stopped before.
func Replace(ctx context.Context, path string, setAside bool, fill func(*database.DB) error) (kept string, err error) {
	_, there := os.Lstat(path)
	if there == nil && !setAside {
		return "", fmt.Errorf("there is a store already, %s. Stop the manager, and set the file aside with --set-aside, which keeps it under another name", path)
	}
	made := path + ".new"
	if err := remove(made); err != nil { // An interrupted Replace left it.
		return "", err
	}
	defer func() { err = errors.Join(err, remove(made)) }()
	db, err := Connect(made)
	if err != nil {
		return "", err
	}
	// Close writes the journal into the file.
	if err := errors.Join(fill(db), db.Close()); err != nil {
		return "", err
	}
	if there == nil {
		if kept, err = aside(ctx, path); err != nil {
			return "", err
		}
	}
	if err := os.Rename(made, path); err != nil {
		return kept, err
	}
	return kept, syncFolder(filepath.Dir(path))
}

// remove removes a file of SQLite, with what stands beside it while it is open.
func remove(path string) error {
	for _, one := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(one); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// aside gives a file another name. Nobody may have it open: a manager would go on with it under that name.
func aside(ctx context.Context, path string) (string, error) {
	db, err := Connect(path)
	if err != nil {
		return "", err
	}
	// It needs the file for itself, and brings the journal into it.
	_, err = db.Exec(ctx, `PRAGMA journal_mode = DELETE`)
	if closed := db.Close(); isBusy(err) {
		return "", fmt.Errorf("a manager uses the store %s. Stop it first", path)
	} else if err := errors.Join(err, closed); err != nil {
		return "", fmt.Errorf("setting %s aside: %w", path, err)
	}
	kept := path + "." + time.Now().UTC().Format("20060102T150405.000")
	return kept, os.Rename(path, kept)
}

// syncFolder has the new name of a file outlive a loss of power.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
