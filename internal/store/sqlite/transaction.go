package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// write runs a transaction. It is rolled back unless do returns nil.
func (s *Store) write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
