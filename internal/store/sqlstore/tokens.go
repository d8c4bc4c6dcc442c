package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

const tokenColumns = `id, name, hash, scopes, tenant, created, created_by, expires, last_used, revoked`

// tokensOf is the lock for counting the tokens of a tenant.
func tokensOf(tenant string) string { return "tokens/" + tenant }

// CreateToken implements store.Tokens.
func (s *Store) CreateToken(ctx context.Context, t store.Token, e store.Event) error {
	err := s.db.Write(ctx, tokensOf(t.Tenant), func(ctx context.Context, tx *database.Tx) error {
		if err := roomFor(ctx, tx, t); err != nil {
			return err
		}
		return insertRecorded(ctx, tx, t, e)
	})
	if err != nil {
		return fmt.Errorf("storing a token: %w", err)
	}
	return nil
}

// insertRecorded inserts a token and its event. It must be the last part of the transaction: a full disk ends the transaction in SQLite, and a later
// statement would be committed alone.
func insertRecorded(ctx context.Context, tx *database.Tx, t store.Token, e store.Event) error {
	if err := insertToken(ctx, tx, t); err != nil {
		return err
	}
	return insertEvent(ctx, tx, e)
}

// roomFor returns ErrTooMany or ErrTooOften if the tenant of a token may have no more.
func roomFor(ctx context.Context, tx *database.Tx, t store.Token) error {
	if t.Tenant == "" {
		return nil
	}
	var valid int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM tokens WHERE tenant = ? AND revoked = 0 AND expires > ?`, t.Tenant, micros(t.Created)).Scan(&valid); err != nil {
		return fmt.Errorf("counting the tokens of the tenant: %w", err)
	}
	if valid >= store.MaxTokensOfTenant {
		return store.ErrTooMany
	}
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM tokens WHERE tenant = ? AND created > ?`, t.Tenant, micros(t.Created.Add(-24*time.Hour))).Scan(&valid); err != nil {
		return fmt.Errorf("counting the tokens of a day: %w", err)
	}
	if valid >= store.MaxTokensOfDay {
		return store.ErrTooOften
	}
	return nil
}

func insertToken(ctx context.Context, tx *database.Tx, t store.Token) error {
	_, err := tx.Exec(ctx, `INSERT INTO tokens (`+tokenColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.ID, t.Name, t.Hash, strings.Join(t.Scopes, " "), t.Tenant, micros(t.Created), t.CreatedBy, micros(t.Expires), micros(t.LastUsed), micros(t.Revoked))
	return err
}

// TokenByHash implements store.Tokens.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	t, err := database.One(ctx, s.db, readToken, `SELECT `+tokenColumns+` FROM tokens WHERE hash = ?`, hash)
	if err != nil {
		return store.Token{}, fmt.Errorf("reading a token: %w", err)
	}
	return t, nil
}

// ListTokens implements store.Tokens.
func (s *Store) ListTokens(ctx context.Context, tenant, after string, limit int) ([]store.Token, error) {
	where, arguments := ofTenant(tenant)
	all, err := database.All(ctx, s.db, readToken, `SELECT `+tokenColumns+` FROM tokens WHERE `+where+`id > ? ORDER BY id LIMIT ?`, append(arguments, after, limit)...)
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	return all, nil
}

func readToken(scan database.Scan) (t store.Token, err error) {
	var scopes string
	var created, expires, used, revoked int64
	err = scan(&t.ID, &t.Name, &t.Hash, &scopes, &t.Tenant, &created, &t.CreatedBy, &expires, &used, &revoked)
	t.Scopes = strings.Fields(scopes)
	t.Created, t.Expires, t.LastUsed, t.Revoked = fromMicros(created), fromMicros(expires), fromMicros(used), fromMicros(revoked)
	return t, err
}

// RevokeToken implements store.Tokens.
func (s *Store) RevokeToken(ctx context.Context, tenant, id string, e store.Event) error {
	return s.db.Write(ctx, "token/"+id, func(ctx context.Context, tx *database.Tx) error {
		var revoked int64
		where, arguments := ofTenant(tenant)
		err := tx.QueryRow(ctx, `SELECT revoked, tenant FROM tokens WHERE `+where+`id = ?`, append(arguments, id)...).Scan(&revoked, &e.Tenant)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return store.ErrNotFound
		case err != nil:
			return fmt.Errorf("revoking a token: %w", err)
		case revoked != 0:
			return nil
		}
		if _, err := tx.Exec(ctx, `UPDATE tokens SET revoked = ? WHERE id = ?`, micros(e.At), id); err != nil {
			return fmt.Errorf("revoking a token: %w", err)
		}
		return insertEvent(ctx, tx, e)
	})
}

// UseToken implements store.Tokens.
func (s *Store) UseToken(ctx context.Context, id string, at time.Time) error {
	if _, err := s.db.Exec(ctx, `UPDATE tokens SET last_used = ?1 WHERE id = ?2 AND last_used < ?1`, micros(at), id); err != nil {
		return fmt.Errorf("recording the use of a token: %w", err)
	}
	return nil
}
