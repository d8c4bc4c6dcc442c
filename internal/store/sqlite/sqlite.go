// Package sqlite opens a store in one file, for one process.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
)

// connections is how many there are at once. SQLite has one writer, whom the others wait for; readers do not wait.
const connections = 8

// How long a start waits for another program, and how often it looks.
const (
	busyTimeout = 5 * time.Second
	busyPause   = 20 * time.Millisecond
)

// Open opens the file, creates it if it is not there, and migrates it. Only its owner may read a new file.
func Open(ctx context.Context, path string) (*sqlstore.Store, error) {
	db, err := Connect(path)
	if err != nil {
		return nil, err
	}
	s, err := sqlstore.Open(ctx, db)
	// While another program turns the journal of a new file into a WAL, SQLite does not wait for it, but fails.
	for end := time.Now().Add(busyTimeout); isBusy(err) && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(busyPause)
		s, err = sqlstore.Open(ctx, db)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", path, err), db.Close())
	}
	return s, nil
}

// Connect opens the file as it is, and creates an empty one if it is not there.
func Connect(path string) (*database.DB, error) { return connect(path) }

// connect sets more pragmas of each connection.
func connect(path string, pragmas ...string) (*database.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", path, err)
	}
	if err := create(absolute); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	source := url.URL{Scheme: "file", Path: absolute, RawQuery: url.Values{
		// FULL: a revocation that was answered is still there after a power failure.
		"_pragma": append([]string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}, pragmas...),
		// A transaction that reads before it writes would fail if another one wrote in between.
		"_txlock": {"immediate"},
	}.Encode()}
	pool, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", path, err)
	}
	pool.SetMaxOpenConns(connections)
	return database.New(pool, dialect), nil
}

// create makes an empty file unless there is one. One that is there is not opened: whoever closes a file gives up all locks that its process has on it.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY // The rest of the code says more about it.
}
