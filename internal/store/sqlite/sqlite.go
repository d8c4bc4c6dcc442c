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

// connections is how many connections are open at most. SQLite has one writer at a time, and the others wait for it; readers do not wait.
const connections = 8

// How long a start waits for another program, and how often it looks.
const (
	busyTimeout = 5 * time.Second
	busyPause   = 20 * time.Millisecond
)

// Open opens the file, creates it if it does not exist, and migrates it. Only its owner may read a new file.
func Open(ctx context.Context, path string) (*sqlstore.Store, error) {
	db, err := Connect(path)
	if err != nil {
		return nil, err
	}
	s, err := sqlstore.Open(ctx, db)
	// While another program switches a new file to WAL, SQLite fails at once and does not wait.
	for end := time.Now().Add(busyTimeout); isBusy(err) && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(busyPause)
		s, err = sqlstore.Open(ctx, db)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", path, err), db.Close())
	}
	return s, nil
}

// Connect opens the file without migrating it, and creates an empty one if it does not exist.
func Connect(path string) (*database.DB, error) { return connect(path) }

// connect sets further pragmas for each connection.
func connect(path string, pragmas ...string) (*database.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", path, err)
	}
	if err := create(absolute); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	source := url.URL{Scheme: "file", Path: absolute, RawQuery: url.Values{
		// FULL, so that a revocation that was answered survives a power failure.
		"_pragma": append([]string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}, pragmas...),
		// Otherwise a transaction that reads and then writes would fail if another one wrote in between.
		"_txlock": {"immediate"},
	}.Encode()}
	pool, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", path, err)
	}
	pool.SetMaxOpenConns(connections)
	return database.New(pool, dialect), nil
}

// create creates an empty file if there is none. It does not open an existing one: closing it would release all locks of this process on it.
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
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY // The higher bits have details.
}
