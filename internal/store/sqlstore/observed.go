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
		// This comes before any row is locked: recording an attempt locks in this order too.
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
			if err := enqueueAll(ctx, tx, c); err != nil {
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

// changeState reports false if the stored state of the object is not the one that the change begins with.
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

// enqueueAll enqueues the messages of a change.
func enqueueAll(ctx context.Context, tx *database.Tx, c store.StateChange) error {
	if c.NewTenant.Name != "" {
		if err := disableEarlier(ctx, tx, c.NewTenant); err != nil {
			return fmt.Errorf("disabling the webhooks of an earlier tenant: %w", err)
		}
	}
	for _, m := range c.Messages {
		if err := enqueue(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}

// ofEarlier is the reason for disabling a webhook of an earlier tenant.
const ofEarlier = "The tenant was deleted, or the cluster was built anew, and then a tenant of this name was created. An administrator of the platform enables the webhook if it is the same tenant."

// disableEarlier takes the webhooks of earlier tenants of its name from a new tenant: they have the URLs of another tenant, and what was
// sent to it. Nothing is deleted, because the same tenant is created anew, too, when a cluster is built anew from Git.
func disableEarlier(ctx context.Context, tx *database.Tx, now store.TenantRef) error {
	all, err := database.All(ctx, tx, readWebhook, webhooksQuery+`w.tenant = ? ORDER BY w.id`, now.Name)
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.IsOf(now) {
			continue
		}
		if _, err := tx.Exec(ctx, `UPDATE webhooks SET tenant = ?, tenant_gone = 0, disabled = 1, disabled_reason = ? WHERE id = ?`, store.OfEarlier(now.Name), ofEarlier, w.ID); err != nil {
			return err
		}
		if err := insertOutboxEvent(ctx, tx, "disableWebhook", w.ID, now.Created); err != nil {
			return err
		}
	}
	return nil
}
