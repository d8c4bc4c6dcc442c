package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kubeop/kubeop/internal/store"
)

// BeginRequest implements store.Requests. It also forgets what expired.
func (s *Store) BeginRequest(ctx context.Context, r store.Request) (kept store.Request, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM requests WHERE expires <= ?`, micros(r.Created)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO requests (caller, key, hash, created, expires) VALUES (?, ?, ?, ?, ?)`,
			r.Caller, r.Key, r.Hash, micros(r.Created), micros(r.Expires)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM requests WHERE caller = ? AND answer IS NULL AND key NOT IN
			(SELECT key FROM requests WHERE caller = ? AND answer IS NULL ORDER BY created DESC, key = ? DESC LIMIT ?)`, r.Caller, r.Caller, r.Key, store.MaxUnanswered); err != nil {
			return err
		}
		var created, expires int64
		kept = store.Request{Caller: r.Caller, Key: r.Key}
		err := tx.QueryRowContext(ctx, `SELECT hash, created, expires, answer FROM requests WHERE caller = ? AND key = ?`, r.Caller, r.Key).
			Scan(&kept.Hash, &created, &expires, &kept.Answer)
		kept.Created, kept.Expires = fromMicros(created), fromMicros(expires)
		return err
	})
	if err != nil {
		return store.Request{}, fmt.Errorf("keeping a request: %w", err)
	}
	return kept, nil
}

// FinishRequest implements store.Requests.
func (s *Store) FinishRequest(ctx context.Context, r store.Request, e store.Event) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `UPDATE requests SET answer = ? WHERE caller = ? AND key = ? AND hash = ? AND answer IS NULL`, r.Answer, r.Caller, r.Key, r.Hash)
		if err != nil {
			return fmt.Errorf("keeping the answer to a request: %w", err)
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 && e.Action == "" {
			return err
		} else if n > 0 {
			return insertEvent(ctx, tx, e)
		}
		return insertUnlessAnswered(ctx, tx, r, e)
	})
}

// insertUnlessAnswered records the event of a request that was forgotten before its end, as one of very many. One with an answer has its event.
func insertUnlessAnswered(ctx context.Context, tx *sql.Tx, r store.Request, e store.Event) error {
	var answered int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM requests WHERE caller = ? AND key = ? AND hash = ? AND answer IS NOT NULL`, r.Caller, r.Key, r.Hash).Scan(&answered)
	if err != nil || answered > 0 || e.Action == "" {
		return err
	}
	return insertEvent(ctx, tx, e)
}

// ForgetRequest implements store.Requests.
func (s *Store) ForgetRequest(ctx context.Context, r store.Request) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM requests WHERE caller = ? AND key = ? AND hash = ? AND answer IS NULL`, r.Caller, r.Key, r.Hash)
	if err != nil {
		return fmt.Errorf("forgetting a request: %w", err)
	}
	return nil
}
