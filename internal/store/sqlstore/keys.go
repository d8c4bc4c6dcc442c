package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// ListSealed implements store.Secrets.
func (s *Store) ListSealed(ctx context.Context, after store.Sealed, limit int) ([]store.Sealed, error) {
	all, err := database.All(ctx, s.db, func(scan database.Scan) (one store.Sealed, err error) {
		return one, scan(&one.Kind, &one.ID, &one.Key, &one.Data)
	}, `SELECT kind, id, key, data FROM sealed WHERE (kind, id) > (?, ?) ORDER BY kind, id LIMIT ?`, after.Kind, after.ID, limit)
	if err != nil {
		return nil, fmt.Errorf("reading encrypted secrets: %w", err)
	}
	return all, nil
}

// ReplaceSealed implements store.Secrets.
func (s *Store) ReplaceSealed(ctx context.Context, was, is store.Sealed) (bool, error) {
	n, err := s.db.Exec(ctx, `UPDATE sealed SET key = ?, data = ? WHERE kind = ? AND id = ? AND key = ? AND data = ?`, is.Key, is.Data, was.Kind, was.ID, was.Key, was.Data)
	if err != nil {
		return false, fmt.Errorf("replacing an encrypted secret: %w", err)
	}
	return n > 0, nil
}

// signing is the lock for adding and dropping keys that sign.
const signing = "signing-keys"

// AddSigningKey implements store.SigningKeys.
func (s *Store) AddSigningKey(ctx context.Context, k store.SigningKey) (added bool, err error) {
	err = s.db.Write(ctx, signing, func(ctx context.Context, tx *database.Tx) error {
		var later int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM signing_keys WHERE used_until > ?`, micros(k.From)).Scan(&later); err != nil {
			return err
		}
		if added = later == 0; !added {
			return nil
		}
		if _, err := tx.Exec(ctx, `INSERT INTO signing_keys (id, created, used_from, used_until) VALUES (?, ?, ?, ?)`, k.Private.ID, micros(k.Created), micros(k.From), micros(k.Until)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO sealed (kind, id, key, data) VALUES (?, ?, ?, ?)`, k.Private.Kind, k.Private.ID, k.Private.Key, k.Private.Data)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("storing a key that signs: %w", err)
	}
	return added, nil
}

// ListSigningKeys implements store.SigningKeys.
func (s *Store) ListSigningKeys(ctx context.Context) ([]store.SigningKey, error) {
	all, err := database.All(ctx, s.db, readSigningKey, `SELECT kind, sealed.id, key, data, created, used_from, used_until FROM signing_keys
		JOIN sealed ON sealed.kind = ? AND sealed.id = signing_keys.id ORDER BY used_from, signing_keys.id`, store.KindSigningKey)
	if err != nil {
		return nil, fmt.Errorf("reading the keys that sign: %w", err)
	}
	return all, nil
}

func readSigningKey(scan database.Scan) (k store.SigningKey, err error) {
	var created, from, until int64
	err = scan(&k.Private.Kind, &k.Private.ID, &k.Private.Key, &k.Private.Data, &created, &from, &until)
	k.Created, k.From, k.Until = fromMicros(created), fromMicros(from), fromMicros(until)
	return k, err
}

// DropSigningKeys implements store.SigningKeys.
func (s *Store) DropSigningKeys(ctx context.Context, until time.Time) error {
	err := s.db.Write(ctx, signing, func(ctx context.Context, tx *database.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM sealed WHERE kind = ? AND id IN (SELECT id FROM signing_keys WHERE used_until <= ?)`, store.KindSigningKey, micros(until)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM signing_keys WHERE used_until <= ?`, micros(until))
		return err
	})
	if err != nil {
		return fmt.Errorf("deleting keys that signed: %w", err)
	}
	return nil
}
