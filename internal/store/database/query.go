package database

import (
	"context"
	"database/sql"
	"errors"

	"github.com/kubeop/kubeop/internal/store"
)

// Scan reads the columns of a row.
type Scan func(columns ...any) error

// Querier runs queries: a DB or a Tx.
type Querier interface {
	query(ctx context.Context, statement string, arguments []any) (*sql.Rows, context.CancelFunc, error)
}

// Each calls read for each row.
func Each(ctx context.Context, of Querier, read func(Scan) error, statement string, arguments ...any) (err error) {
	rows, cancel, err := of.query(ctx, statement, arguments)
	if err != nil {
		return err
	}
	defer cancel()
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// All returns the results of read for all rows.
func All[T any](ctx context.Context, of Querier, read func(Scan) (T, error), statement string, arguments ...any) (all []T, err error) {
	err = Each(ctx, of, func(scan Scan) error {
		one, err := read(scan)
		all = append(all, one)
		return err
	}, statement, arguments...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// One returns the result of read for the first row, or store.ErrNotFound if there is no row.
func One[T any](ctx context.Context, of Querier, read func(Scan) (T, error), statement string, arguments ...any) (one T, err error) {
	all, err := All(ctx, of, read, statement, arguments...)
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return one, err
	}
	return all[0], nil
}

// Int64 reads a row with one column.
func Int64(scan Scan) (n int64, err error) { return n, scan(&n) }
