package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/kubeop/kubeop/internal/store"
)

func insertEvent(ctx context.Context, tx *sql.Tx, e store.Event) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO events (at, actor, action, object, tenant, address, request_id, commit_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		micros(e.At), e.Actor, e.Action, e.Object, e.Tenant, e.Address, e.RequestID, e.Commit)
	if err != nil {
		return fmt.Errorf("recording an event: %w", err)
	}
	return nil
}

// RecordEvent implements store.Audit.
func (s *Store) RecordEvent(ctx context.Context, e store.Event) error {
	return s.write(ctx, func(tx *sql.Tx) error { return insertEvent(ctx, tx, e) })
}

// ofTenant is the part of a condition that is about one tenant, or about all for "". With an OR of both, SQLite would not use the index of the tenant.
func ofTenant(name string) (where string, arguments []any) {
	if name == "" {
		return "", nil
	}
	return "tenant = ? AND ", []any{name}
}

// ListEvents implements store.Audit.
func (s *Store) ListEvents(ctx context.Context, of string, before int64, limit int) (all []store.Event, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	where, arguments := ofTenant(of)
	rows, err := s.db.QueryContext(ctx, `SELECT id, at, actor, action, object, tenant, address, request_id, commit_hash FROM events
		WHERE `+where+`id < ? ORDER BY id DESC LIMIT ?`, append(arguments, before, limit)...)
	if err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e store.Event
		var at int64
		if err := rows.Scan(&e.ID, &at, &e.Actor, &e.Action, &e.Object, &e.Tenant, &e.Address, &e.RequestID, &e.Commit); err != nil {
			return nil, fmt.Errorf("reading events: %w", err)
		}
		e.At = fromMicros(at)
		all = append(all, e)
	}
	return all, rows.Err()
}
