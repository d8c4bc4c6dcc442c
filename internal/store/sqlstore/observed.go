package sqlstore

import (
	"context"
	"fmt"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// ListStates implements store.Observations.
func (s *Store) ListStates(ctx context.Context, after string, limit int) ([]store.ObservedState, error) {
	all, err := database.All(ctx, s.db, func(scan database.Scan) (o store.ObservedState, err error) { return o, scan(&o.Object, &o.State) },
		`SELECT object, state FROM observed_states WHERE object > ? ORDER BY object LIMIT ?`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the observed states: %w", err)
	}
	return all, nil
}

// RecordChanges implements store.Observations.
func (s *Store) RecordChanges(ctx context.Context, changes []store.StateChange) (conflicts []string, err error) {
	err = s.db.Write(ctx, "observed_states", func(ctx context.Context, tx *database.Tx) error {
		conflicts = nil
		// Before any row: who records an attempt locks in this order too.
		if err := tx.Ordered(ctx, "webhook_deliveries"); err != nil {
			return err
		}
		for _, c := range changes {
			changed, err := changeState(ctx, tx, c)
			if err != nil {
				return err
			}
			if !changed {
				conflicts = append(conflicts, c.Object)
				continue
			}
			if err := tell(ctx, tx, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("recording changes: %w", err)
	}
	return conflicts, nil
}

// changeState reports false if the object is in another state than the change begins with.
func changeState(ctx context.Context, tx *database.Tx, c store.StateChange) (bool, error) {
	var changed int64
	var err error
	switch {
	case c.From == "":
		changed, err = tx.Exec(ctx, `INSERT INTO observed_states (object, state) VALUES (?, ?) ON CONFLICT (object) DO NOTHING`, c.Object, c.To)
	case c.To == "":
		changed, err = tx.Exec(ctx, `DELETE FROM observed_states WHERE object = ? AND state = ?`, c.Object, c.From)
	default:
		changed, err = tx.Exec(ctx, `UPDATE observed_states SET state = ? WHERE object = ? AND state = ?`, c.To, c.Object, c.From)
	}
	return changed > 0, err
}

// tell enqueues the messages of a change. The webhooks of an earlier tenant of the same name are deleted: they have its URLs, and what was sent to them.
func tell(ctx context.Context, tx *database.Tx, c store.StateChange) error {
	if c.NewTenant != "" {
		if err := deleteWebhooks(ctx, tx, `SELECT id FROM webhooks WHERE tenant = ?1 AND created < ?2`, c.NewTenant, micros(c.NewTenantAt)); err != nil {
			return fmt.Errorf("deleting the webhooks of an earlier tenant: %w", err)
		}
	}
	for _, m := range c.Messages {
		if err := enqueue(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}
