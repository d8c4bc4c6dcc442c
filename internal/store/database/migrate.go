package database

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Migration is a step of the schema. A migration only adds to the schema, so that an older program works with a newer database, and a rollback of the
// program needs no change of it. A released migration never changes. Up may have several statements.
type Migration struct{ Name, Up string }

// Migrating is the lock that migrations hold.
const Migrating = "migrations"

// lockPause is the pause before a migration tries again to lock its tables.
const lockPause = 2 * time.Second

// Migrate applies the missing migrations, in one transaction. Programs that start at the same time do it one after the other. A database with further
// migrations of a newer program stays as it is; a database with other migrations is refused. If somebody reads a table for long, as a backup does,
// Migrate waits until the context ends, and lets others read the table meanwhile.
func (db *DB) Migrate(ctx context.Context, all []Migration) error {
	for {
		err := db.WriteLong(ctx, Migrating, func(ctx context.Context, tx *Tx) error {
			if err := tx.setTimeout(ctx, tx.dialect.Timeouts.TableLock); err != nil {
				return err
			}
			return tx.Migrate(ctx, all)
		})
		if err == nil || db.dialect.LockTimedOut == nil || !db.dialect.LockTimedOut(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(lockPause):
		}
	}
}

// Migrate is DB.Migrate within a transaction.
func (tx *Tx) Migrate(ctx context.Context, all []Migration) error {
	if err := tx.migrations(ctx); err != nil {
		return err
	}
	applied, err := tx.History(ctx)
	if err != nil {
		return err
	}
	if err := compare(applied, all); err != nil {
		return err
	}
	for i := len(applied); i < len(all); i++ {
		up := all[i].Up
		if tx.dialect.Types != nil {
			up = tx.dialect.Types.Replace(up)
		}
		if _, err := tx.tx.ExecContext(ctx, up); err != nil {
			return fmt.Errorf("migration %d (%s): %w", i+1, all[i].Name, err)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO migrations (version, name) VALUES (?, ?)`, i+1, all[i].Name); err != nil {
			return fmt.Errorf("migration %d (%s): %w", i+1, all[i].Name, err)
		}
	}
	return nil
}

// migrations creates the table of migrations. An older form of it had versions only, and no names.
func (tx *Tx) migrations(ctx context.Context) error {
	columns, err := tx.columnsOfMigrations(ctx)
	if err != nil {
		return err
	}
	var up string
	switch columns {
	case 0:
		up = `CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT`
	case 1:
		up = `ALTER TABLE migrations ADD COLUMN name TEXT NOT NULL DEFAULT ''`
	default: // A newer program may have added more.
		return nil
	}
	if tx.dialect.Types != nil {
		up = tx.dialect.Types.Replace(up)
	}
	_, err = tx.Exec(ctx, up)
	return err
}

func (tx *Tx) columnsOfMigrations(ctx context.Context) (int, error) {
	tables, err := tx.Tables(ctx)
	for _, t := range tables {
		if t.Name == "migrations" {
			return len(t.Columns), err
		}
	}
	return 0, err
}

// History returns the names of the applied migrations, "" for those from before migrations had names.
func (tx *Tx) History(ctx context.Context) ([]string, error) {
	columns, err := tx.columnsOfMigrations(ctx)
	if err != nil || columns == 0 {
		return nil, err
	}
	name := "name"
	if columns == 1 {
		name = "''"
	}
	next := 1
	return All(ctx, tx, func(scan Scan) (string, error) {
		version, name := 0, ""
		if err := scan(&version, &name); err != nil {
			return "", err
		}
		if version != next {
			return "", fmt.Errorf("the database has the migration %d and not %d, so no version of this program made it as it is. Restore a backup into an empty one", version, next)
		}
		next++
		return name, nil
	}, `SELECT version, `+name+` FROM migrations ORDER BY version`)
}

// compare returns an error if the database has another migration at the same position.
func compare(applied []string, all []Migration) error {
	for i, name := range applied {
		if i < len(all) && name != "" && name != all[i].Name {
			return fmt.Errorf("the migration %d of the database is %q, and of this program %q: a program with another history migrated it. Use that one, or restore a backup into an empty database", i+1, name, all[i].Name)
		}
	}
	return nil
}
