// Package sqlstore is the store in a database. It has the tables and statements that SQLite and PostgreSQL share; store/sqlite and store/postgres open
// one.
package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// Store is an open store.
type Store struct{ db *database.DB }

var _ store.Store = (*Store)(nil)

// Open migrates a database, and returns the store in it. If it fails, the database stays open.
func Open(ctx context.Context, db *database.DB) (*Store, error) {
	if err := db.Migrate(ctx, Migrations()); err != nil {
		return nil, fmt.Errorf("migrating the store: %w", err)
	}
	return &Store{db}, nil
}

// Ping implements store.Database. It reads a row, because an open database may not be readable.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := database.One(ctx, s.db, database.Int64, `SELECT coalesce(max(version), 0) FROM migrations`); err != nil {
		return fmt.Errorf("reading the store: %w", err)
	}
	return nil
}

// Close implements store.Database.
func (s *Store) Close() error { return s.db.Close() }

// Lead implements store.Database.
func (s *Store) Lead(ctx context.Context, name string, do func(context.Context) error) (bool, error) {
	return s.db.Lead(ctx, name, do)
}

// micros converts a time for the database.
func micros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

// fromMicros converts a time from the database.
func fromMicros(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMicro(at).UTC()
}

// ofTenant returns the condition for one tenant, or for all if name is "". SQLite would not use the index of the tenant if one condition covered both
// with OR.
func ofTenant(name string) (where string, arguments []any) {
	if name == "" {
		return "", nil
	}
	return "tenant = ? AND ", []any{name}
}
