package database

import (
	"context"
	"database/sql"
)

// Tx is a transaction. It is used with the context that its function gets.
type Tx struct {
	tx      *sql.Tx
	dialect *Dialect
}

// Exec runs a statement, and returns how many rows it changed.
func (tx *Tx) Exec(ctx context.Context, statement string, arguments ...any) (int64, error) {
	return changed(tx.tx.ExecContext(ctx, tx.dialect.say(statement), clean(arguments)...))
}

// QueryRow runs a query for one row. Its Scan returns sql.ErrNoRows if there is none.
func (tx *Tx) QueryRow(ctx context.Context, statement string, arguments ...any) *sql.Row {
	return tx.tx.QueryRowContext(ctx, tx.dialect.say(statement), clean(arguments)...)
}

// Ordered has the rows that this transaction inserts into a table next get IDs that are greater than those of all that is committed, and less than those of all that is committed
// later: so whoever reads on after an ID misses nothing. Others that insert wait until the transaction ends, so it stands right before the insert.
func (tx *Tx) Ordered(ctx context.Context, table string) error { return tx.lock(ctx, lockOrder, table) }

func (tx *Tx) query(ctx context.Context, statement string, arguments []any) (*sql.Rows, context.CancelFunc, error) {
	rows, err := tx.tx.QueryContext(ctx, tx.dialect.say(statement), clean(arguments)...)
	return rows, func() {}, err
}

func (tx *Tx) lock(ctx context.Context, kind int, name string) error {
	if tx.dialect.Locks.Transaction == "" {
		return nil
	}
	_, err := tx.Exec(ctx, tx.dialect.Locks.Transaction, kind, numberOf(name))
	return err
}

func (tx *Tx) patient(ctx context.Context) error {
	if tx.dialect.Locks.Patient == "" {
		return nil
	}
	_, err := tx.Exec(ctx, tx.dialect.Locks.Patient)
	return err
}

func changed(done sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}
