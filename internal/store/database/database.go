// Package database runs statements and transactions on the database of the manager: SQLite or PostgreSQL. Each statement is written once, for both.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// timeout is how long a single statement, or a transaction, may take, even if the caller would wait longer.
	timeout = 20 * time.Second
	// tries is how often a transaction is tried if the database aborts it because of others.
	tries = 5
	// pause is how long the second try waits; each further one waits twice as long.
	pause = 5 * time.Millisecond
)

// DB is an open database.
type DB struct {
	pool    *sql.DB
	dialect *Dialect
	leads   sync.Map
	// turn holds one writer, if the database has one at a time; nil if any number may write.
	turn chan struct{}
}

// New returns the database behind a pool of connections.
func New(pool *sql.DB, dialect *Dialect) *DB {
	db := &DB{pool: pool, dialect: dialect}
	if dialect.OneWriter {
		db.turn = make(chan struct{}, 1)
	}
	return db
}

// takeTurn waits until this writer may write. Writers go in the order in which they came, and those that wait hold no connection, so that reads find one.
func (db *DB) takeTurn(ctx context.Context) (done func(), err error) {
	if db.turn == nil {
		return func() {}, nil
	}
	select {
	case db.turn <- struct{}{}:
		return func() { <-db.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for other writes: %w", ctx.Err())
	}
}

// Close closes all connections.
func (db *DB) Close() error { return db.pool.Close() }

// Exec runs a single statement, and returns how many rows it changed.
func (db *DB) Exec(ctx context.Context, statement string, arguments ...any) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = db.again(ctx, func() error {
		n, err = changed(db.pool.ExecContext(ctx, db.dialect.withPlaceholders(statement), clean(arguments)...))
		return err
	})
	return n, err
}

// Write runs a transaction, and rolls it back unless do returns nil. Transactions with the same lock run one after the other, so what one of them
// reads, and decides on, does not change before it ends. lock is "" for a transaction that decides nothing. If the database aborts the transaction
// because of another one, do is called again. After an error of a statement, do must return.
func (db *DB) Write(ctx context.Context, lock string, do func(context.Context, *Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	locked := func(ctx context.Context, tx *Tx) error {
		if lock != "" {
			if err := tx.lock(ctx, lockWrite+lock); err != nil {
				return err
			}
		}
		return do(ctx, tx)
	}
	return db.again(ctx, func() error { return db.transaction(ctx, &sql.TxOptions{Isolation: db.dialect.Isolation}, locked) })
}

// WriteLong is Write for a transaction that may take as long as the context lasts. It calls do only once.
func (db *DB) WriteLong(ctx context.Context, lock string, do func(context.Context, *Tx) error) error {
	done, err := db.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	return db.transaction(ctx, &sql.TxOptions{Isolation: db.dialect.Isolation}, func(ctx context.Context, tx *Tx) error {
		if err := tx.setTimeout(ctx, tx.dialect.Timeouts.None); err != nil {
			return err
		}
		if err := tx.lock(ctx, lockWrite+lock); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// again calls do, which writes, when it is its turn, and up to tries times as long as the database aborts it because of others.
func (db *DB) again(ctx context.Context, do func() error) error {
	done, err := db.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	for try := 1; ; try++ {
		err := do()
		if err == nil || try == tries || db.dialect.Retryable == nil || !db.dialect.Retryable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause << (try - 1)):
		}
	}
}

// Snapshot runs a transaction that only reads, and does not see concurrent writes. It may take as long as the context lasts.
func (db *DB) Snapshot(ctx context.Context, do func(context.Context, *Tx) error) error {
	options := &sql.TxOptions{ReadOnly: true}
	if db.dialect.Isolation != sql.LevelDefault {
		options.Isolation = sql.LevelRepeatableRead
	}
	return db.transaction(ctx, options, func(ctx context.Context, tx *Tx) error {
		if err := tx.setTimeout(ctx, tx.dialect.Timeouts.None); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

func (db *DB) transaction(ctx context.Context, options *sql.TxOptions, do func(context.Context, *Tx) error) error {
	begun, err := db.pool.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	if err := do(ctx, &Tx{tx: begun, dialect: db.dialect}); err != nil {
		// If the context or the connection ended, the transaction is rolled back already.
		if undone := begun.Rollback(); undone != nil && !errors.Is(undone, sql.ErrTxDone) {
			err = fmt.Errorf("%w; and rolling back: %w", err, undone)
		}
		return err
	}
	return begun.Commit()
}

func (db *DB) query(ctx context.Context, statement string, arguments []any) (*sql.Rows, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	rows, err := db.pool.QueryContext(ctx, db.dialect.withPlaceholders(statement), clean(arguments)...)
	if err != nil {
		cancel()
	}
	return rows, cancel, err
}
