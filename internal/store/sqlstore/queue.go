package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// blocked is the due time of a message that waits for an older one about the same object. When that one is delivered or parked, unblock makes this one due.
const blocked = int64(math.MaxInt64)

func countWaiting(ctx context.Context, tx *database.Tx, webhook string) (n int, err error) {
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhook_deliveries WHERE webhook = ? AND state = 'waiting'`, webhook).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting the messages that wait for a webhook: %w", err)
	}
	return n, nil
}

// The largest number of messages that one transaction parks: to make room for a new message, and because their webhook does not answer.
const (
	parkedForRoom = 100
	parkedAtOnce  = 1000
)

// holdEvery is the interval at which hold writes a message again. So the day in which a message is tried may be shorter by at most this time.
const holdEvery = time.Hour

// parking selects messages that wait for a webhook and are not being sent: the oldest ones.
type parking struct {
	webhook string
	at      time.Time
	// since limits it to messages that began to wait then or before, as the table has it.
	since int64
	limit int
	why   string
}

// parkOldest parks the oldest messages that wait for a webhook.
func parkOldest(ctx context.Context, tx *database.Tx, webhook string, at time.Time) error {
	return park(ctx, tx, parking{webhook, at, math.MaxInt64, parkedForRoom, fmt.Sprintf("Parked, because more than %d messages waited.", store.MaxWaiting-1)})
}

// dueBehind returns when a message is due: at a time, unless an older message about the same object waits.
func dueBehind(ctx context.Context, tx *database.Tx, d store.Delivery, at time.Time) (int64, error) {
	var older int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE webhook = ? AND object = ? AND state = 'waiting' AND id < ? LIMIT 1) older`, d.Webhook, d.Object, d.ID).Scan(&older)
	switch {
	case err != nil:
		return 0, fmt.Errorf("looking for an older message about the same object: %w", err)
	case older > 0:
		return blocked, nil
	}
	return micros(at), nil
}

// unblock makes the next message about an object due. Call Ordered before a message is delivered or parked: otherwise a message that is written
// meanwhile would wait for it forever.
func unblock(ctx context.Context, tx *database.Tx, webhook, object string, at time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET due = ? WHERE due = ? AND id =
		(SELECT min(id) FROM webhook_deliveries WHERE webhook = ? AND object = ? AND state = 'waiting')`, micros(at), blocked, webhook, object)
	return err
}

// unblockAll is unblock for all objects of all webhooks.
func unblockAll(ctx context.Context, tx *database.Tx, at time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET due = ? WHERE state = 'waiting' AND due = ? AND NOT EXISTS (SELECT 1 FROM webhook_deliveries older
		WHERE older.webhook = webhook_deliveries.webhook AND older.object = webhook_deliveries.object AND older.state = 'waiting' AND older.id < webhook_deliveries.id)`, micros(at), blocked)
	return err
}

// park parks messages, and makes the messages due that waited for them.
func park(ctx context.Context, tx *database.Tx, p parking) error {
	parked, err := database.All(ctx, tx, func(scan database.Scan) (object string, err error) { return object, scan(&object) },
		`UPDATE webhook_deliveries SET state = 'parked', ended = ?, answer = ?, claim = '', claimed_until = 0 WHERE id IN
		(SELECT id FROM webhook_deliveries WHERE webhook = ? AND state = 'waiting' AND claimed_until <= ? AND since <= ? ORDER BY id LIMIT ?)
		AND state = 'waiting' AND claimed_until <= ? RETURNING object`, // Again, because on PostgreSQL it may have been claimed meanwhile.
		micros(p.at), p.why, p.webhook, micros(p.at), p.since, p.limit, micros(p.at))
	if err != nil || len(parked) == 0 {
		return err
	}
	slices.Sort(parked)
	for _, object := range slices.Compact(parked) {
		if err := unblock(ctx, tx, p.webhook, object, p.at); err != nil {
			return err
		}
	}
	if err := prune(ctx, tx, p.webhook, store.Parked); err != nil {
		return err
	}
	return recordParked(ctx, tx, p.webhook, p.at)
}

// hold starts the day in which waiting messages of a webhook are tried anew. It writes a message once in holdEvery at most, however often it is called.
func hold(ctx context.Context, tx *database.Tx, webhook string, now time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET since = ? WHERE webhook = ? AND state = 'waiting' AND since <= ?`, micros(now), webhook, micros(now.Add(-holdEvery)))
	return err
}

// prune deletes the oldest delivered or parked messages of a webhook, beyond the number that is kept.
func prune(ctx context.Context, tx *database.Tx, webhook string, state store.DeliveryState) error {
	most := map[store.DeliveryState]int{store.Delivered: store.MaxDelivered, store.Parked: store.MaxParked}[state]
	_, err := tx.Exec(ctx, `DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE webhook = ? AND state = ? ORDER BY ended DESC, id DESC LIMIT ? OFFSET ?)`,
		webhook, string(state), store.MaxWaiting, most)
	return err
}

// recordParked records an event about parked messages, unless the webhook had one shortly before: a webhook that does not answer would fill the log.
func recordParked(ctx context.Context, tx *database.Tx, webhook string, at time.Time) error {
	first, err := tx.Exec(ctx, `UPDATE webhooks SET parked_logged = ? WHERE id = ? AND parked_logged <= ?`, micros(at), webhook, micros(at.Add(-store.ParkedEvery)))
	if err != nil || first == 0 {
		return err
	}
	return insertOutboxEvent(ctx, tx, "parkDelivery", webhook, at)
}

// ofOutbox is the actor of events about what the manager did to a webhook by itself.
const ofOutbox = "webhooks"

// insertOutboxEvent records what the manager itself did to a webhook.
func insertOutboxEvent(ctx context.Context, tx *database.Tx, action, webhook string, at time.Time) error {
	w, err := webhookOf(ctx, tx, "", webhook)
	if err != nil {
		return err
	}
	return insertEvent(ctx, tx, store.Event{At: at, Actor: ofOutbox, Action: action, Object: "webhook/" + webhook, Tenant: w.Tenant})
}
