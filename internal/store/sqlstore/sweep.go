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
	// Webhooks wait for this, so nothing else keeps them from it.
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

// sweepUsage deletes usage that is older than KeepUsage, and then places that have no newer usage.
func (s *Store) sweepUsage(ctx context.Context, now time.Time) error {
	for _, statement := range []string{
		`DELETE FROM usage_hours WHERE (place, hour) IN (SELECT place, hour FROM usage_hours WHERE hour <= ?1 LIMIT ?2)`,
		`DELETE FROM usage_covered WHERE (hour, cluster, meter_group) IN (SELECT hour, cluster, meter_group FROM usage_covered WHERE hour <= ?1 LIMIT ?2)`,
		// The outer comparison keeps a place that is used again meanwhile.
		`DELETE FROM usage_places WHERE last <= ?1 AND id IN (SELECT id FROM usage_places WHERE last <= ?1 LIMIT ?2)`,
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
