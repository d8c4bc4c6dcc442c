package sqlstore

import (
	"context"
	"fmt"
	"math"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// insertEvent records an event in the transaction of its write. It must be the last statement: no other transaction records an event until this one
// ends.
func insertEvent(ctx context.Context, tx *database.Tx, e store.Event) error {
	if err := tx.Ordered(ctx, "events"); err != nil {
		return fmt.Errorf("recording an event: %w", err)
	}
	_, err := tx.Exec(ctx, `INSERT INTO events (at, actor, action, object, tenant, address, request_id, commit_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		micros(e.At), e.Actor, e.Action, e.Object, e.Tenant, e.Address, e.RequestID, e.Commit)
	if err != nil {
		return fmt.Errorf("recording an event: %w", err)
	}
	return nil
}

// RecordEvent implements store.Audit.
func (s *Store) RecordEvent(ctx context.Context, e store.Event) error {
	return s.db.Write(ctx, "", func(ctx context.Context, tx *database.Tx) error { return insertEvent(ctx, tx, e) })
}

// ListEvents implements store.Audit.
func (s *Store) ListEvents(ctx context.Context, tenant string, before int64, limit int) ([]store.Event, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	where, arguments := ofTenant(tenant)
	all, err := database.All(ctx, s.db, readEvent, `SELECT id, at, actor, action, object, tenant, address, request_id, commit_hash FROM events
		WHERE `+where+`id < ? ORDER BY id DESC LIMIT ?`, append(arguments, before, limit)...)
	if err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	return all, nil
}

func readEvent(scan database.Scan) (e store.Event, err error) {
	var at int64
	err = scan(&e.ID, &at, &e.Actor, &e.Action, &e.Object, &e.Tenant, &e.Address, &e.RequestID, &e.Commit)
	e.At = fromMicros(at)
	return e, err
}
