package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

const payersQuery = `SELECT uid, name, created, gone, price_list FROM payers `

func readPayer(scan database.Scan) (p store.Payer, err error) {
	var created, gone int64
	err = scan(&p.UID, &p.Name, &created, &gone, &p.PriceList)
	p.Created, p.Gone = fromMicros(created), fromMicros(gone)
	return p, err
}

// RecordPayers implements store.Payers. It writes only what changed.
func (s *Store) RecordPayers(ctx context.Context, all []store.Payer, now time.Time) error {
	err := s.db.Write(ctx, "payers", func(ctx context.Context, tx *database.Tx) error {
		before, err := database.All(ctx, tx, readPayer, payersQuery)
		if err != nil {
			return err
		}
		stored := map[string]store.Payer{}
		for _, p := range before {
			stored[p.UID] = p
		}
		for _, p := range all {
			was, has := stored[p.UID]
			delete(stored, p.UID)
			if !p.Gone.IsZero() && !was.Gone.IsZero() {
				p.Gone = was.Gone
			}
			if has && p.Gone.Equal(was.Gone) && p.PriceList == was.PriceList {
				continue
			}
			if _, err := tx.Exec(ctx, `INSERT INTO payers (uid, name, created, gone, price_list) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (uid) DO UPDATE SET gone = excluded.gone, price_list = excluded.price_list`, p.UID, p.Name, micros(p.Created), micros(p.Gone), p.PriceList); err != nil {
				return err
			}
		}
		for _, p := range stored {
			if !p.Gone.IsZero() {
				continue
			}
			if _, err := tx.Exec(ctx, `UPDATE payers SET gone = ? WHERE uid = ?`, micros(now), p.UID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording who pays: %w", err)
	}
	return nil
}

// ListPayers implements store.Payers.
func (s *Store) ListPayers(ctx context.Context, name string) ([]store.Payer, error) {
	where, arguments := "", []any(nil)
	if name != "" {
		where, arguments = "WHERE name = ? ", []any{name}
	}
	all, err := database.All(ctx, s.db, readPayer, payersQuery+where+`ORDER BY name, created, uid`, arguments...)
	if err != nil {
		return nil, fmt.Errorf("reading who pays: %w", err)
	}
	return all, nil
}

// RecordAlert implements store.Alerts.
func (s *Store) RecordAlert(ctx context.Context, key string, m store.Message) (first bool, err error) {
	err = s.db.Write(ctx, "alerts", func(ctx context.Context, tx *database.Tx) error {
		added, err := tx.Exec(ctx, `INSERT INTO alerts (id, at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, key, micros(m.At))
		if first = added > 0; err != nil || !first {
			return err
		}
		return enqueue(ctx, tx, m)
	})
	if err != nil {
		return false, fmt.Errorf("recording an alert: %w", err)
	}
	return first, nil
}
