package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

const tokenColumns = `id, name, hash, scopes, tenant, created, created_by, expires, last_used, revoked`

// CreateToken implements store.Tokens.
func (s *Store) CreateToken(ctx context.Context, t store.Token, e store.Event) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
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

// insertRecorded inserts a token and its event. A disk that is full ends the transaction, so nothing may follow then: it would be written by itself.
func insertRecorded(ctx context.Context, tx *sql.Tx, t store.Token, e store.Event) error {
	if err := insertToken(ctx, tx, t); err != nil {
		return err
	}
	return insertEvent(ctx, tx, e)
}

// roomFor returns ErrTooMany or ErrTooOften if the tenant of a token may have no more.
func roomFor(ctx context.Context, tx *sql.Tx, t store.Token) error {
	if t.Tenant == "" {
		return nil
	}
	var valid int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM tokens WHERE tenant = ? AND revoked = 0 AND expires > ?`, t.Tenant, micros(t.Created)).Scan(&valid); err != nil {
		return fmt.Errorf("counting the tokens of the tenant: %w", err)
	}
	if valid >= store.MaxTokensOfTenant {
		return store.ErrTooMany
	}
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM tokens WHERE tenant = ? AND created > ?`, t.Tenant, micros(t.Created.Add(-24*time.Hour))).Scan(&valid); err != nil {
		return fmt.Errorf("counting the tokens of a day: %w", err)
	}
	if valid >= store.MaxTokensOfDay {
		return store.ErrTooOften
	}
	return nil
}

func insertToken(ctx context.Context, tx *sql.Tx, t store.Token) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO tokens (`+tokenColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.ID, t.Name, t.Hash, strings.Join(t.Scopes, " "), t.Tenant, micros(t.Created), t.CreatedBy, micros(t.Expires), micros(t.LastUsed), micros(t.Revoked))
	return err
}

// TokenByHash implements store.Tokens.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	found, err := s.tokens(ctx, `WHERE hash = ?`, hash)
	if err != nil {
		return store.Token{}, err
	}
	if len(found) == 0 {
		return store.Token{}, store.ErrNotFound
	}
	return found[0], nil
}

// ListTokens implements store.Tokens.
func (s *Store) ListTokens(ctx context.Context, of, after string, limit int) ([]store.Token, error) {
	where, arguments := ofTenant(of)
	return s.tokens(ctx, `WHERE `+where+`id > ? ORDER BY id LIMIT ?`, append(arguments, after, limit)...)
}

func (s *Store) tokens(ctx context.Context, where string, arguments ...any) (all []store.Token, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+tokenColumns+` FROM tokens `+where, arguments...)
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var t store.Token
		var scopes string
		var created, expires, used, revoked int64
		if err := rows.Scan(&t.ID, &t.Name, &t.Hash, &scopes, &t.Tenant, &created, &t.CreatedBy, &expires, &used, &revoked); err != nil {
			return nil, fmt.Errorf("reading tokens: %w", err)
		}
		t.Scopes = strings.Fields(scopes)
		t.Created, t.Expires, t.LastUsed, t.Revoked = fromMicros(created), fromMicros(expires), fromMicros(used), fromMicros(revoked)
		all = append(all, t)
	}
	return all, rows.Err()
}

// RevokeToken implements store.Tokens.
func (s *Store) RevokeToken(ctx context.Context, of, id string, e store.Event) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		var revoked int64
		err := tx.QueryRowContext(ctx, `SELECT revoked, tenant FROM tokens WHERE id = ? AND (? = '' OR tenant = ?)`, id, of, of).Scan(&revoked, &e.Tenant)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return store.ErrNotFound
		case err != nil:
			return fmt.Errorf("revoking a token: %w", err)
		case revoked != 0:
			return nil
		}
		if _, err := tx.ExecContext(ctx, `UPDATE tokens SET revoked = ? WHERE id = ?`, micros(e.At), id); err != nil {
			return fmt.Errorf("revoking a token: %w", err)
		}
		return insertEvent(ctx, tx, e)
	})
}

// UseToken implements store.Tokens.
func (s *Store) UseToken(ctx context.Context, id string, at time.Time) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE tokens SET last_used = max(last_used, ?) WHERE id = ?`, micros(at), id); err != nil {
		return fmt.Errorf("recording the use of a token: %w", err)
	}
	return nil
}
