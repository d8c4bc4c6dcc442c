package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// OfferSetup implements store.Setup. Its lock is that of the tokens without a tenant, which belong to administrators.
func (s *Store) OfferSetup(ctx context.Context, hash []byte, now, expires time.Time) error {
	return s.db.Write(ctx, tokensOf(""), func(ctx context.Context, tx *database.Tx) error {
		if err := withoutAdministrator(ctx, tx, now); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO setup (only_row, hash, expires) VALUES (1, ?, ?) ON CONFLICT (only_row) DO UPDATE SET hash = excluded.hash, expires = excluded.expires`, hash, micros(expires)); err != nil {
			return fmt.Errorf("storing the code for the first administrator: %w", err)
		}
		return nil
	})
}

// ClaimSetup implements store.Setup.
func (s *Store) ClaimSetup(ctx context.Context, hash []byte, t store.Token, e store.Event) error {
	return s.db.Write(ctx, tokensOf(""), func(ctx context.Context, tx *database.Tx) error {
		if err := withoutAdministrator(ctx, tx, t.Created); err != nil {
			return err
		}
		n, err := tx.Exec(ctx, `DELETE FROM setup WHERE hash = ? AND expires > ?`, hash, micros(t.Created))
		if err != nil {
			return fmt.Errorf("claiming the code for the first administrator: %w", err)
		}
		if n == 0 {
			return store.ErrNotFound
		}
		if err := insertRecorded(ctx, tx, t, e); err != nil {
			return fmt.Errorf("storing the token of the first administrator: %w", err)
		}
		return nil
	})
}

// withoutAdministrator returns ErrAdministrated if a token with the scope admin is valid. Only these tokens have no tenant.
func withoutAdministrator(ctx context.Context, tx *database.Tx, now time.Time) error {
	var valid int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM tokens WHERE tenant = '' AND revoked = 0 AND expires > ?`, micros(now)).Scan(&valid); err != nil {
		return fmt.Errorf("looking for an administrator: %w", err)
	}
	if valid > 0 {
		return store.ErrAdministrated
	}
	return nil
}
