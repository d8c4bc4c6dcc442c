package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

// ListSealed implements store.Secrets.
func (s *Store) ListSealed(ctx context.Context, after store.Sealed, limit int) (all []store.Sealed, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT kind, id, key, data FROM sealed WHERE (kind, id) > (?, ?) ORDER BY kind, id LIMIT ?`, after.Kind, after.ID, limit)
	if err != nil {
		return nil, fmt.Errorf("reading encrypted secrets: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one store.Sealed
		if err := rows.Scan(&one.Kind, &one.ID, &one.Key, &one.Data); err != nil {
			return nil, fmt.Errorf("reading encrypted secrets: %w", err)
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// ReplaceSealed implements store.Secrets.
func (s *Store) ReplaceSealed(ctx context.Context, was, is store.Sealed) (bool, error) {
	done, err := s.db.ExecContext(ctx, `UPDATE sealed SET key = ?, data = ? WHERE kind = ? AND id = ? AND key = ? AND data = ?`, is.Key, is.Data, was.Kind, was.ID, was.Key, was.Data)
	if err != nil {
		return false, fmt.Errorf("replacing an encrypted secret: %w", err)
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// AddSigningKey implements store.SigningKeys.
func (s *Store) AddSigningKey(ctx context.Context, k store.SigningKey) (added bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `INSERT INTO signing_keys (id, created, used_from, used_until) SELECT ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM signing_keys WHERE used_until > ?)`,
			k.Private.ID, micros(k.Created), micros(k.From), micros(k.Until), micros(k.From))
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		added = true
		_, err = tx.ExecContext(ctx, `INSERT INTO sealed (kind, id, key, data) VALUES (?, ?, ?, ?)`, k.Private.Kind, k.Private.ID, k.Private.Key, k.Private.Data)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("storing a key that signs: %w", err)
	}
	return added, nil
}

// ListSigningKeys implements store.SigningKeys.
func (s *Store) ListSigningKeys(ctx context.Context) (all []store.SigningKey, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT kind, sealed.id, key, data, created, used_from, used_until FROM signing_keys
		JOIN sealed ON sealed.kind = ? AND sealed.id = signing_keys.id ORDER BY used_from, signing_keys.id`, store.KindSigningKey)
	if err != nil {
		return nil, fmt.Errorf("reading the keys that sign: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var k store.SigningKey
		var created, from, until int64
		if err := rows.Scan(&k.Private.Kind, &k.Private.ID, &k.Private.Key, &k.Private.Data, &created, &from, &until); err != nil {
			return nil, fmt.Errorf("reading the keys that sign: %w", err)
		}
		k.Created, k.From, k.Until = fromMicros(created), fromMicros(from), fromMicros(until)
		all = append(all, k)
	}
	return all, rows.Err()
}

// DropSigningKeys implements store.SigningKeys.
func (s *Store) DropSigningKeys(ctx context.Context, until time.Time) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM sealed WHERE kind = ? AND id IN (SELECT id FROM signing_keys WHERE used_until <= ?)`, store.KindSigningKey, micros(until)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM signing_keys WHERE used_until <= ?`, micros(until))
		return err
	})
	if err != nil {
		return fmt.Errorf("deleting keys that signed: %w", err)
	}
	return nil
}
