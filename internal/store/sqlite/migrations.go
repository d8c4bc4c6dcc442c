package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// migrations only ever add to the schema, so that an older program works with the database of a newer one, and a rollback needs nothing. None is
// changed once it was released. Times are microseconds since 1970, 0 for none.
var migrations = []string{
	`CREATE TABLE tokens (
		id         TEXT PRIMARY KEY,
		name       TEXT NOT NULL,
		hash       BLOB NOT NULL UNIQUE,
		scopes     TEXT NOT NULL,
		tenant     TEXT NOT NULL,
		created    INTEGER NOT NULL,
		created_by TEXT NOT NULL,
		expires    INTEGER NOT NULL,
		last_used  INTEGER NOT NULL DEFAULT 0,
		revoked    INTEGER NOT NULL DEFAULT 0
	) STRICT;
	CREATE INDEX tokens_by_tenant ON tokens (tenant, id);
	CREATE TABLE setup (
		only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
		hash     BLOB NOT NULL,
		expires  INTEGER NOT NULL
	) STRICT;
	CREATE TABLE events (
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		at         INTEGER NOT NULL,
		actor      TEXT NOT NULL,
		action     TEXT NOT NULL,
		object     TEXT NOT NULL,
		tenant     TEXT NOT NULL,
		address    TEXT NOT NULL,
		request_id TEXT NOT NULL
	) STRICT;
	CREATE INDEX events_by_tenant ON events (tenant, id);`,
	`ALTER TABLE events ADD COLUMN commit_hash TEXT NOT NULL DEFAULT '';
	CREATE TABLE requests (
		caller  TEXT NOT NULL,
		key     TEXT NOT NULL,
		hash    BLOB NOT NULL,
		created INTEGER NOT NULL,
		expires INTEGER NOT NULL,
		answer  BLOB,
		PRIMARY KEY (caller, key)
	) STRICT;
	CREATE INDEX requests_by_expiry ON requests (expires);`,
	`CREATE TABLE sealed (
		kind TEXT NOT NULL,
		id   TEXT NOT NULL,
		key  TEXT NOT NULL,
		data BLOB NOT NULL,
		PRIMARY KEY (kind, id)
	) STRICT;
	CREATE TABLE signing_keys (
		id         TEXT PRIMARY KEY,
		created    INTEGER NOT NULL,
		used_from  INTEGER NOT NULL,
		used_until INTEGER NOT NULL
	) STRICT;`,
	`CREATE INDEX events_by_object ON events (object);
	CREATE INDEX events_by_actor ON events (actor);`,
}

// migrate applies what the database does not have yet. Two programs that start at once wait for each other at the first statement that writes.
func (s *Store) migrate(ctx context.Context) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY) STRICT`); err != nil {
			return err
		}
		var applied int
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migrations`).Scan(&applied); err != nil {
			return err
		}
		for version := applied + 1; version <= len(migrations); version++ {
			if _, err := tx.ExecContext(ctx, migrations[version-1]); err != nil {
				return fmt.Errorf("to version %d: %w", version, err)
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO migrations (version) VALUES (?)`, version); err != nil {
				return fmt.Errorf("to version %d: %w", version, err)
			}
		}
		return nil
	})
}
