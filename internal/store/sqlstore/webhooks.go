package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// webhooksQuery reads webhooks with their secrets.
const webhooksQuery = `SELECT w.id, w.name, w.tenant, w.tenant_uid, w.url, w.types, w.disabled, w.disabled_reason, w.created, w.created_by, w.previous_until,
	coalesce(s.id, ''), coalesce(s.key, ''), s.data, coalesce(p.id, ''), coalesce(p.key, ''), p.data FROM webhooks w
	LEFT JOIN sealed s ON s.kind = '` + store.KindWebhookSecret + `' AND s.id = w.secret
	LEFT JOIN sealed p ON p.kind = '` + store.KindWebhookSecret + `' AND p.id = w.previous WHERE `

func readWebhook(scan database.Scan) (w store.Webhook, err error) {
	var types string
	var disabled, created, until int64
	err = scan(&w.ID, &w.Name, &w.Tenant, &w.TenantUID, &w.URL, &types, &disabled, &w.DisabledReason, &created, &w.CreatedBy, &until, &w.Secret.ID, &w.Secret.Key, &w.Secret.Data, &w.Previous.ID, &w.Previous.Key, &w.Previous.Data)
	w.Types, w.Disabled, w.Created, w.PreviousUntil = strings.Fields(types), disabled != 0, fromMicros(created), fromMicros(until)
	for _, secret := range []*store.Sealed{&w.Secret, &w.Previous} {
		if secret.ID != "" {
			secret.Kind = store.KindWebhookSecret
		}
	}
	return w, err
}

// ofTenantWebhook is ofTenant for webhooksQuery.
func ofTenantWebhook(name string) (where string, arguments []any) {
	if name == "" {
		return "", nil
	}
	return "w.tenant = ? AND ", []any{name}
}

// CreateWebhook implements store.Endpoints.
func (s *Store) CreateWebhook(ctx context.Context, w store.Webhook, e store.Event) error {
	err := s.db.Write(ctx, "webhooks/"+w.Tenant, func(ctx context.Context, tx *database.Tx) error {
		var has int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhooks WHERE tenant = ?`, w.Tenant).Scan(&has); err != nil {
			return err
		}
		if has >= store.MaxWebhooks {
			return store.ErrTooManyWebhooks
		}
		if err := insertSealed(ctx, tx, w.Secret); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO webhooks (id, name, tenant, tenant_uid, url, types, disabled, created, created_by, secret) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			w.ID, w.Name, w.Tenant, w.TenantUID, w.URL, strings.Join(w.Types, " "), number(w.Disabled), micros(w.Created), w.CreatedBy, w.Secret.ID); err != nil {
			return err
		}
		return insertEvent(ctx, tx, e)
	})
	if err != nil {
		return fmt.Errorf("storing a webhook: %w", err)
	}
	return nil
}

func insertSealed(ctx context.Context, tx *database.Tx, s store.Sealed) error {
	_, err := tx.Exec(ctx, `INSERT INTO sealed (kind, id, key, data) VALUES (?, ?, ?, ?)`, s.Kind, s.ID, s.Key, s.Data)
	return err
}

func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// ListWebhooks implements store.Endpoints.
func (s *Store) ListWebhooks(ctx context.Context, tenant, after string, limit int) ([]store.Webhook, error) {
	where, arguments := ofTenantWebhook(tenant)
	all, err := database.All(ctx, s.db, readWebhook, webhooksQuery+where+`w.id > ? ORDER BY w.id LIMIT ?`, append(arguments, after, limit)...)
	if err != nil {
		return nil, fmt.Errorf("reading webhooks: %w", err)
	}
	return all, nil
}

// GetWebhook implements store.Endpoints.
func (s *Store) GetWebhook(ctx context.Context, tenant, id string) (store.Webhook, error) {
	return webhookOf(ctx, s.db, tenant, id)
}

func webhookOf(ctx context.Context, from database.Querier, tenant, id string) (store.Webhook, error) {
	where, arguments := ofTenantWebhook(tenant)
	w, err := database.One(ctx, from, readWebhook, webhooksQuery+where+`w.id = ?`, append(arguments, id)...)
	if err != nil {
		return store.Webhook{}, fmt.Errorf("reading a webhook: %w", err)
	}
	return w, nil
}

// ChangeWebhook implements store.Endpoints.
func (s *Store) ChangeWebhook(ctx context.Context, tenant, id string, change func(*store.Webhook) error, e store.Event) (is store.Webhook, err error) {
	err = s.db.Write(ctx, "webhook/"+id, func(ctx context.Context, tx *database.Tx) error {
		was, err := webhookOf(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		is = was
		if err := change(&is); err != nil {
			return err
		}
		if err := replaceSecrets(ctx, tx, was, is); err != nil {
			return err
		}
		changed, err := tx.Exec(ctx, `UPDATE webhooks SET name = ?, tenant = ?, tenant_uid = ?, url = ?, types = ?, disabled = ?, disabled_reason = ?, secret = ?, previous = ?, previous_until = ? WHERE id = ? AND tenant = ?`,
			is.Name, is.Tenant, is.TenantUID, is.URL, strings.Join(is.Types, " "), number(is.Disabled), is.DisabledReason, is.Secret.ID, is.Previous.ID, micros(is.PreviousUntil), id, was.Tenant)
		if err != nil {
			return err
		}
		if changed == 0 { // It was deleted meanwhile, or belongs to an earlier tenant now.
			return store.ErrNotFound
		}
		if was.Disabled && !is.Disabled {
			// Waiting messages are tried for as long as new ones.
			if _, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET since = ? WHERE webhook = ? AND state = 'waiting'`, micros(e.At), id); err != nil {
				return err
			}
		}
		e.Tenant = is.Tenant
		return insertEvent(ctx, tx, e)
	})
	if err != nil {
		return store.Webhook{}, fmt.Errorf("changing a webhook: %w", err)
	}
	return is, nil
}

// replaceSecrets inserts the new secrets, and deletes those that are no longer needed. It does not touch the others, which may be encrypted anew at
// the same time.
func replaceSecrets(ctx context.Context, tx *database.Tx, was, is store.Webhook) error {
	for _, secret := range []store.Sealed{is.Secret, is.Previous} {
		if secret.ID == "" || secret.ID == was.Secret.ID || secret.ID == was.Previous.ID {
			continue
		}
		if err := insertSealed(ctx, tx, secret); err != nil {
			return err
		}
	}
	for _, secret := range []store.Sealed{was.Secret, was.Previous} {
		if secret.ID == "" || secret.ID == is.Secret.ID || secret.ID == is.Previous.ID {
			continue
		}
		if _, err := tx.Exec(ctx, `DELETE FROM sealed WHERE kind = ? AND id = ?`, secret.Kind, secret.ID); err != nil {
			return err
		}
	}
	return nil
}

// DeleteWebhook implements store.Endpoints.
func (s *Store) DeleteWebhook(ctx context.Context, tenant, id string, e store.Event) error {
	err := s.db.Write(ctx, "webhook/"+id, func(ctx context.Context, tx *database.Tx) error {
		was, err := webhookOf(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if err := deleteWebhooks(ctx, tx, `SELECT id FROM webhooks WHERE id = ?1`, id); err != nil {
			return err
		}
		e.Tenant = was.Tenant
		return insertEvent(ctx, tx, e)
	})
	if err != nil {
		return fmt.Errorf("deleting a webhook: %w", err)
	}
	return nil
}

// deleteWebhooks deletes the webhooks that a query selects by id, with their secrets and deliveries. The query has numbered arguments.
func deleteWebhooks(ctx context.Context, tx *database.Tx, query string, arguments ...any) error {
	for _, statement := range []string{
		`DELETE FROM sealed WHERE kind = '` + store.KindWebhookSecret + `' AND id IN (SELECT secret FROM webhooks WHERE id IN (` + query + `) UNION ALL SELECT previous FROM webhooks WHERE id IN (` + query + `))`,
		`DELETE FROM webhook_deliveries WHERE webhook IN (` + query + `)`,
		`DELETE FROM webhooks WHERE id IN (` + query + `)`,
	} {
		if _, err := tx.Exec(ctx, statement, arguments...); err != nil {
			return err
		}
	}
	return nil
}
