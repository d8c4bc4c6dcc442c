package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// ListDue implements store.Outbox.
func (s *Store) ListDue(ctx context.Context, now time.Time) ([]store.DueWebhook, error) {
	all, err := database.All(ctx, s.db, func(scan database.Scan) (w store.DueWebhook, err error) { return w, scan(&w.ID, &w.Tenant) },
		`SELECT id, tenant FROM webhooks WHERE disabled = 0 AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook = webhooks.id AND d.state = 'waiting' AND d.due <= ? AND d.claimed_until <= ?) ORDER BY id`,
		micros(now), micros(now))
	if err != nil {
		return nil, fmt.Errorf("reading what is due: %w", err)
	}
	return all, nil
}

// ClaimDeliveries implements store.Outbox.
func (s *Store) ClaimDeliveries(ctx context.Context, webhook string, c store.Claim, limit int) (all []store.Delivery, err error) {
	const free = `state = 'waiting' AND due <= ? AND claimed_until <= ?`
	now := micros(c.Now)
	err = s.db.Write(ctx, "outbox/"+webhook, func(ctx context.Context, tx *database.Tx) error {
		all = nil
		found, err := database.All(ctx, tx, readDelivery, `SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE webhook = ? AND `+free+` ORDER BY due, id LIMIT ?`, webhook, now, now, limit)
		if err != nil {
			return err
		}
		for _, d := range found {
			// In PostgreSQL another transaction may have parked the message meanwhile, or made it wait for one that is sent again.
			claimed, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET claim = ?, claimed_until = ? WHERE id = ? AND `+free, c.By, micros(c.Until), d.ID, now, now)
			if err != nil {
				return err
			}
			if claimed > 0 {
				all = append(all, d)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claiming messages for a webhook: %w", err)
	}
	return all, nil
}

// ReleaseDelivery implements store.Outbox.
func (s *Store) ReleaseDelivery(ctx context.Context, id int64, claim string) error {
	if _, err := s.db.Exec(ctx, `UPDATE webhook_deliveries SET claim = '', claimed_until = 0 WHERE id = ? AND claim = ?`, id, claim); err != nil {
		return fmt.Errorf("giving up a message: %w", err)
	}
	return nil
}

// FinishAttempt implements store.Outbox.
func (s *Store) FinishAttempt(ctx context.Context, o store.Outcome) error {
	err := s.db.Write(ctx, "outbox/"+o.Webhook, func(ctx context.Context, tx *database.Tx) error {
		if err := tx.Ordered(ctx, "webhook_deliveries"); err != nil {
			return err
		}
		var claimed int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhook_deliveries WHERE id = ? AND claim = ? AND state = 'waiting'`, o.ID, o.Claim).Scan(&claimed); err != nil || claimed == 0 {
			return err
		}
		if err := recordAttempt(ctx, tx, o); err != nil {
			return err
		}
		if !o.Expired.IsZero() {
			err := park(ctx, tx, parking{o.Webhook, o.Tried, micros(o.Expired), parkedAtOnce, "Parked: the webhook has not answered for a day."})
			if err != nil {
				return err
			}
		}
		if !o.Held.IsZero() {
			if err := hold(ctx, tx, o.Webhook, o.Held); err != nil {
				return err
			}
		}
		if o.GoneURL == "" {
			return nil
		}
		return disableGone(ctx, tx, o)
	})
	if err != nil {
		return fmt.Errorf("recording an attempt: %w", err)
	}
	return nil
}

func recordAttempt(ctx context.Context, tx *database.Tx, o store.Outcome) (err error) {
	due, ended := int64(0), micros(o.Tried)
	if o.State == store.Waiting {
		// Meanwhile somebody may have asked for an older message again.
		if due, err = dueBehind(ctx, tx, o.Delivery, o.Due); err != nil {
			return err
		}
		ended = 0
	}
	_, err = tx.Exec(ctx, `UPDATE webhook_deliveries SET state = ?, attempts = ?, due = ?, tried = ?, ended = ?, status = ?, answer = ?, claim = '', claimed_until = 0 WHERE id = ?`,
		string(o.State), o.Attempts, due, micros(o.Tried), ended, o.Status, o.Answer, o.ID)
	if err != nil || o.State == store.Waiting {
		return err
	}
	if err := unblock(ctx, tx, o.Webhook, o.Object, o.Tried); err != nil {
		return err
	}
	if err := prune(ctx, tx, o.Webhook, o.State); err != nil {
		return err
	}
	if o.State == store.Parked {
		return recordParked(ctx, tx, o.Webhook, o.Tried)
	}
	return nil
}

// disableGone disables a webhook that wants no more messages, unless its URL changed meanwhile.
func disableGone(ctx context.Context, tx *database.Tx, o store.Outcome) error {
	disabled, err := tx.Exec(ctx, `UPDATE webhooks SET disabled = 1, disabled_reason = ? WHERE id = ? AND url = ? AND disabled = 0`, o.Answer, o.Webhook, o.GoneURL)
	if err != nil || disabled == 0 {
		return err
	}
	return insertOutboxEvent(ctx, tx, "disableWebhook", o.Webhook, o.Tried)
}

// CountDeliveries implements store.Outbox.
func (s *Store) CountDeliveries(ctx context.Context) (map[store.DeliveryState]int, error) {
	type count struct {
		state store.DeliveryState
		n     int
	}
	all, err := database.All(ctx, s.db, func(scan database.Scan) (c count, err error) { return c, scan(&c.state, &c.n) }, `SELECT state, count(*) FROM webhook_deliveries GROUP BY state`)
	if err != nil {
		return nil, fmt.Errorf("counting messages to webhooks: %w", err)
	}
	counts := map[store.DeliveryState]int{}
	for _, c := range all {
		counts[c.state] = c.n
	}
	return counts, nil
}
