package sqlstore

import (
	"context"
	"fmt"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// requestsOf is the lock for beginning and ending requests of a caller.
func requestsOf(caller string) string { return "requests/" + caller }

// BeginRequest implements store.Requests. It also deletes expired requests of the caller; Sweep deletes those of others.
func (s *Store) BeginRequest(ctx context.Context, r store.Request) (kept store.Request, err error) {
	err = s.db.Write(ctx, requestsOf(r.Caller), func(ctx context.Context, tx *database.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM requests WHERE caller = ? AND expires <= ?`, r.Caller, micros(r.Created)); err != nil {
			return err
		}
		// The update changes nothing, but locks the row: otherwise the end of the request or Sweep could delete it between the insert and the read.
		var created, expires int64
		kept = store.Request{Caller: r.Caller, Key: r.Key}
		if err := tx.QueryRow(ctx, `INSERT INTO requests (caller, key, hash, created, expires) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (caller, key) DO UPDATE SET hash = requests.hash RETURNING hash, created, expires, answer`,
			r.Caller, r.Key, r.Hash, micros(r.Created), micros(r.Expires)).Scan(&kept.Hash, &created, &expires, &kept.Answer); err != nil {
			return err
		}
		kept.Created, kept.Expires = fromMicros(created), fromMicros(expires)
		_, err := tx.Exec(ctx, `DELETE FROM requests WHERE caller = ?1 AND answer IS NULL AND key NOT IN
			(SELECT key FROM requests WHERE caller = ?1 AND answer IS NULL ORDER BY created DESC, CASE WHEN key = ?2 THEN 0 ELSE 1 END LIMIT ?3)`, r.Caller, r.Key, store.MaxUnanswered)
		return err
	})
	if err != nil {
		return store.Request{}, fmt.Errorf("keeping a request: %w", err)
	}
	return kept, nil
}

// FinishRequest implements store.Requests.
func (s *Store) FinishRequest(ctx context.Context, r store.Request, e store.Event) error {
	return s.db.Write(ctx, requestsOf(r.Caller), func(ctx context.Context, tx *database.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE requests SET answer = ? WHERE caller = ? AND key = ? AND hash = ? AND answer IS NULL`, r.Answer, r.Caller, r.Key, r.Hash)
		switch {
		case err != nil:
			return fmt.Errorf("keeping the answer to a request: %w", err)
		case n == 0:
			return insertUnlessAnswered(ctx, tx, r, e)
		case e.Action == "":
			return nil
		}
		return insertEvent(ctx, tx, e)
	})
}

// insertUnlessAnswered records the event of a request that was forgotten before its end, because there were too many. A request with an answer has its
// event already.
func insertUnlessAnswered(ctx context.Context, tx *database.Tx, r store.Request, e store.Event) error {
	var answered int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM requests WHERE caller = ? AND key = ? AND hash = ? AND answer IS NOT NULL`, r.Caller, r.Key, r.Hash).Scan(&answered)
	if err != nil || answered > 0 || e.Action == "" {
		return err
	}
	return insertEvent(ctx, tx, e)
}

// ForgetRequest implements store.Requests.
func (s *Store) ForgetRequest(ctx context.Context, r store.Request) error {
	_, err := s.db.Exec(ctx, `DELETE FROM requests WHERE caller = ? AND key = ? AND hash = ? AND answer IS NULL`, r.Caller, r.Key, r.Hash)
	if err != nil {
		return fmt.Errorf("forgetting a request: %w", err)
	}
	return nil
}
