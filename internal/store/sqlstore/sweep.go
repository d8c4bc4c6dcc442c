package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

const (
	// swept is how many rows one transaction deletes: others can write between two transactions.
	swept = 500
	// settling is how long after the end of its token a request may still get its answer.
	settling = time.Hour
)

// Sweep implements store.Sweeper.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	ended, settled := micros(now.Add(-store.KeepEnded)), micros(now.Add(-settling))
	const endedTokens = `SELECT id FROM tokens WHERE revoked > 0 AND revoked <= ?1 OR expires <= ?1`
	for _, statements := range [][]string{
		{`DELETE FROM events WHERE object IN (SELECT 'token/' || id FROM (` + endedTokens + ` ORDER BY id LIMIT ?2) ended WHERE NOT EXISTS (SELECT 1 FROM events WHERE actor = ended.id))`, `DELETE FROM tokens WHERE id IN (` + endedTokens + ` ORDER BY id LIMIT ?2)`},
		{`DELETE FROM requests WHERE (caller, key) IN (SELECT caller, key FROM requests WHERE expires <= ?1 OR caller IN (` + endedTokens + `) LIMIT ?2)`},
	} {
		before := ended
		if len(statements) == 1 {
			before = settled
		}
		if err := s.sweep(ctx, before, statements); err != nil {
			return fmt.Errorf("removing what ended: %w", err)
		}
	}
	// A failure about usage does not keep messages to webhooks waiting.
	return errors.Join(s.sweepUsage(ctx, now), s.sweepWebhooks(ctx, now))
}

// sweepWebhooks deletes messages for deleted webhooks that were written during the deletion, and secrets that no longer sign. It makes messages due
// that wait for one that does not exist any more.
func (s *Store) sweepWebhooks(ctx context.Context, now time.Time) error {
	err := s.db.Write(ctx, "", func(ctx context.Context, tx *database.Tx) error {
		if err := tx.Ordered(ctx, "webhook_deliveries"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM webhook_deliveries WHERE webhook NOT IN (SELECT id FROM webhooks)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM sealed WHERE kind = '`+store.KindWebhookSecret+`' AND id IN (SELECT previous FROM webhooks WHERE previous_until <= ?)`, micros(now)); err != nil {
			return err
		}
		return unblockAll(ctx, tx, now)
	})
	if err != nil {
		return fmt.Errorf("removing what is left of webhooks: %w", err)
	}
	return nil
}

// owned is a webhook of a tenant. gone is the time since which the Tenant does not exist, 0 while it exists.
type owned struct {
	store.Webhook
	gone int64
}

// SweepWebhooks implements store.Observations.
func (s *Store) SweepWebhooks(ctx context.Context, exist []store.TenantRef, now time.Time) error {
	is := map[string]store.TenantRef{}
	for _, t := range exist {
		is[t.Name] = t
	}
	all, err := database.All(ctx, s.db, func(scan database.Scan) (o owned, err error) {
		var created int64
		err = scan(&o.ID, &o.Tenant, &o.TenantUID, &created, &o.gone)
		o.Created = fromMicros(created)
		return o, err
	}, `SELECT id, tenant, tenant_uid, created, tenant_gone FROM webhooks WHERE tenant <> '' ORDER BY id`)
	if err != nil {
		return fmt.Errorf("reading the webhooks of tenants: %w", err)
	}
	for _, o := range all {
		t, has := is[o.Tenant]
		if err := s.sweepOwned(ctx, o, has && o.IsOf(t), now); err != nil {
			return fmt.Errorf("removing webhooks of tenants that are gone: %w", err)
		}
	}
	return nil
}

// sweepOwned records whether the tenant of a webhook exists, and deletes a webhook whose tenant has been gone for long. It changes nothing
// if the webhook was given to a tenant meanwhile.
func (s *Store) sweepOwned(ctx context.Context, o owned, exists bool, now time.Time) error {
	gone := micros(now)
	switch {
	case exists && o.gone == 0, !exists && o.gone > micros(now.Add(-store.KeepWebhooks)):
		return nil
	case exists:
		gone = 0
	}
	return s.db.Write(ctx, "webhook/"+o.ID, func(ctx context.Context, tx *database.Tx) error {
		marked, err := tx.Exec(ctx, `UPDATE webhooks SET tenant_gone = ? WHERE id = ? AND tenant = ? AND tenant_uid = ? AND tenant_gone = ?`, gone, o.ID, o.Tenant, o.TenantUID, o.gone)
		if err != nil || marked == 0 || exists || o.gone == 0 {
			return err
		}
		if err := deleteWebhooks(ctx, tx, `SELECT id FROM webhooks WHERE id = ?1`, o.ID); err != nil {
			return err
		}
		return insertEvent(ctx, tx, store.Event{At: now, Actor: ofOutbox, Action: "deleteWebhook", Object: "webhook/" + o.ID, Tenant: o.Tenant})
	})
}

// sweepUsage deletes usage that is older than KeepUsage, then places that have no newer usage, payers that can have none, and alerts.
func (s *Store) sweepUsage(ctx context.Context, now time.Time) error {
	for _, statement := range []string{
		`DELETE FROM usage_hours WHERE (place, hour) IN (SELECT place, hour FROM usage_hours WHERE hour <= ?1 LIMIT ?2)`,
		`DELETE FROM usage_covered WHERE (hour, cluster, meter_group) IN (SELECT hour, cluster, meter_group FROM usage_covered WHERE hour <= ?1 LIMIT ?2)`,
		// The outer comparison keeps a place that is used again meanwhile.
		`DELETE FROM usage_places WHERE last <= ?1 AND id IN (SELECT id FROM usage_places WHERE last <= ?1 LIMIT ?2)`,
		`DELETE FROM payers WHERE gone > 0 AND uid IN (SELECT uid FROM payers WHERE gone > 0 AND gone <= ?1 LIMIT ?2)`,
		`DELETE FROM alerts WHERE id IN (SELECT id FROM alerts WHERE at <= ?1 LIMIT ?2)`,
	} {
		if err := s.sweep(ctx, micros(now.Add(-store.KeepUsage)), []string{statement}); err != nil {
			return fmt.Errorf("removing old usage: %w", err)
		}
	}
	return nil
}

// sweep runs statements in one transaction, and repeats that until the last statement deletes fewer rows than it may.
func (s *Store) sweep(ctx context.Context, before int64, statements []string) error {
	for removed := int64(swept); removed == swept; {
		err := s.db.Write(ctx, "sweep", func(ctx context.Context, tx *database.Tx) (err error) {
			removed, err = removedBy(ctx, tx, before, statements)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removedBy runs statements, and returns how many rows the last one deleted.
func removedBy(ctx context.Context, tx *database.Tx, before int64, statements []string) (removed int64, err error) {
	for _, statement := range statements {
		if removed, err = tx.Exec(ctx, statement, before, swept); err != nil {
			return 0, err
		}
	}
	return removed, nil
}
