package sqlstore

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

const deliveryColumns = `id, webhook, message, type, tenant, object, at, body, state, attempts, since, due, tried, status, answer`

func readDelivery(scan database.Scan) (d store.Delivery, err error) {
	var at, since, due, tried int64
	m := &d.Message
	err = scan(&d.ID, &d.Webhook, &m.ID, &m.Type, &m.Tenant, &m.Object, &at, &m.Body, &d.State, &d.Attempts, &since, &due, &tried, &d.Status, &d.Answer)
	m.At, d.Since, d.Tried = fromMicros(at), fromMicros(since), fromMicros(tried)
	if d.State == store.Waiting && due != blocked {
		d.Due = fromMicros(due)
	}
	return d, err
}

// enqueue writes a message for each webhook that wants it, in the transaction of the event. It must be at the end of the transaction: others that
// enqueue wait until the transaction ends.
func enqueue(ctx context.Context, tx *database.Tx, m store.Message) error {
	without := "" // The UID of webhooks that have none.
	if m.MatchUID {
		without = m.TenantUID
	}
	hooks, err := database.All(ctx, tx, func(scan database.Scan) (w store.Webhook, err error) {
		var types string
		err = scan(&w.ID, &types)
		w.Types = strings.Fields(types)
		return w, err
	}, `SELECT id, types FROM webhooks WHERE disabled = 0 AND (tenant = '' OR tenant = ? AND tenant_uid IN (?, ?)) ORDER BY id`, m.Tenant, without, m.TenantUID)
	if err != nil {
		return fmt.Errorf("finding the webhooks for a message: %w", err)
	}
	for _, w := range hooks {
		if !w.Wants(m.Type) {
			continue
		}
		if _, err := insertDelivery(ctx, tx, w.ID, m); err != nil {
			return err
		}
	}
	return nil
}

// insertDelivery writes a message for a webhook. If too many wait for the webhook, it parks the oldest.
func insertDelivery(ctx context.Context, tx *database.Tx, webhook string, m store.Message) (id int64, err error) {
	if err := tx.Ordered(ctx, "webhook_deliveries"); err != nil {
		return 0, fmt.Errorf("ordering the messages of webhooks: %w", err)
	}
	waiting, err := countWaiting(ctx, tx, webhook)
	if err != nil {
		return 0, err
	}
	if waiting >= store.MaxWaiting {
		if err := parkOldest(ctx, tx, webhook, m.At); err != nil {
			return 0, fmt.Errorf("parking the oldest messages of a webhook: %w", err)
		}
	}
	due, err := dueBehind(ctx, tx, store.Delivery{ID: math.MaxInt64, Webhook: webhook, Message: m}, m.At)
	if err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `INSERT INTO webhook_deliveries (webhook, message, type, tenant, object, at, body, state, since, due) VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?, ?) RETURNING id`,
		webhook, m.ID, m.Type, m.Tenant, m.Object, micros(m.At), m.Body, micros(m.At), due).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("writing a message for a webhook: %w", err)
	}
	return id, nil
}

// EnqueueFor implements store.Deliveries.
func (s *Store) EnqueueFor(ctx context.Context, webhook string, m store.Message, e store.Event) (d store.Delivery, err error) {
	err = s.db.Write(ctx, "webhook/"+webhook, func(ctx context.Context, tx *database.Tx) error {
		w, err := webhookOf(ctx, tx, "", webhook)
		if err != nil {
			return err
		}
		if err := tx.Ordered(ctx, "webhook_deliveries"); err != nil {
			return err
		}
		waiting, err := countWaiting(ctx, tx, webhook)
		if err != nil {
			return err
		}
		if waiting >= store.MaxWaiting {
			return store.ErrTooManyWaiting
		}
		id, err := insertDelivery(ctx, tx, webhook, m)
		if err != nil {
			return err
		}
		e.Tenant = w.Tenant
		if err := insertEvent(ctx, tx, e); err != nil {
			return err
		}
		d, err = deliveryOf(ctx, tx, webhook, id)
		return err
	})
	if err != nil {
		return store.Delivery{}, fmt.Errorf("writing a message for a webhook: %w", err)
	}
	return d, nil
}

func deliveryOf(ctx context.Context, from database.Querier, webhook string, id int64) (store.Delivery, error) {
	return database.One(ctx, from, readDelivery, `SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE webhook = ? AND id = ?`, webhook, id)
}

// ListDeliveries implements store.Deliveries.
func (s *Store) ListDeliveries(ctx context.Context, webhook string, state store.DeliveryState, before int64, limit int) ([]store.Delivery, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	where, arguments := "", []any{webhook}
	if state != "" {
		where, arguments = "state = ? AND ", append(arguments, string(state))
	}
	all, err := database.All(ctx, s.db, readDelivery, `SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE webhook = ? AND `+where+`id < ? ORDER BY id DESC LIMIT ?`, append(arguments, before, limit)...)
	if err != nil {
		return nil, fmt.Errorf("reading what was sent to a webhook: %w", err)
	}
	return all, nil
}

// Redeliver implements store.Deliveries.
func (s *Store) Redeliver(ctx context.Context, webhook string, id int64, e store.Event) (d store.Delivery, err error) {
	err = s.db.Write(ctx, "webhook/"+webhook, func(ctx context.Context, tx *database.Tx) error {
		was, err := deliveryOf(ctx, tx, webhook, id)
		if err != nil {
			return err
		}
		w, err := webhookOf(ctx, tx, "", webhook)
		if err != nil {
			return err
		}
		if err := tx.Ordered(ctx, "webhook_deliveries"); err != nil {
			return err
		}
		due, err := dueBehind(ctx, tx, was, e.At)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET state = 'waiting', attempts = 0, since = ?, due = ? WHERE id = ?`, micros(e.At), due, id); err != nil {
			return err
		}
		// Newer messages about the object wait for this one again.
		if _, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET due = ? WHERE webhook = ? AND object = ? AND state = 'waiting' AND id > ?`, blocked, webhook, was.Object, id); err != nil {
			return err
		}
		e.Tenant = w.Tenant
		if err := insertEvent(ctx, tx, e); err != nil {
			return err
		}
		d, err = deliveryOf(ctx, tx, webhook, id)
		return err
	})
	if err != nil {
		return store.Delivery{}, fmt.Errorf("sending a message again: %w", err)
	}
	return d, nil
}
