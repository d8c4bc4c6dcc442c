package database

import (
	"context"
	"database/sql"
)

// Tx is a transaction. Use it with the context that its function gets.
type Tx struct {
	tx      *sql.Tx
	dialect *Dialect
}

// Exec runs a statement, and returns how many rows it changed.
func (tx *Tx) Exec(ctx context.Context, statement string, arguments ...any) (int64, error) {
	return changed(tx.tx.ExecContext(ctx, tx.dialect.withPlaceholders(statement), clean(arguments)...))
}

// QueryRow runs a query for one row. Its Scan returns sql.ErrNoRows if there is none.
func (tx *Tx) QueryRow(ctx context.Context, statement string, arguments ...any) *sql.Row {
	return tx.tx.QueryRowContext(ctx, tx.dialect.withPlaceholders(statement), clean(arguments)...)
}

// Ordered makes IDs of a table follow the order of commits: rows that this transaction inserts next have greater IDs than all committed ones, and
// smaller ones than all that are committed later. So a reader that continues after an ID misses nothing. Other transactions that insert wait until
// this one ends, so call it right before the insert.
func (tx *Tx) Ordered(ctx context.Context, table string) error { return tx.lock(ctx, lockOrder+table) }

func (tx *Tx) query(ctx context.Context, statement string, arguments []any) (*sql.Rows, context.CancelFunc, error) {
	rows, err := tx.tx.QueryContext(ctx, tx.dialect.withPlaceholders(statement), clean(arguments)...)
	return rows, func() {}, err
}

func (tx *Tx) lock(ctx context.Context, name string) error {
	if tx.dialect.Locks.Transaction == "" {
		return nil
	}
	_, err := tx.Exec(ctx, tx.dialect.Locks.Transaction, name)
	return err
}

// setTimeout runs one of the dialect's Timeouts.
func (tx *Tx) setTimeout(ctx context.Context, statement string) error {
	if statement == "" {
		return nil
	}
	_, err := tx.Exec(ctx, statement)
	return err
}

func changed(done sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}
