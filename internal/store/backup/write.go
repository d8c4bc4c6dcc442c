package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/kubeop/kubeop/internal/store/database"
)

// Write writes all rows as they are at one moment, while others read and write. It returns the number of rows. The header has the version of the
// program.
func Write(ctx context.Context, db *database.DB, to io.Writer, version string) (rows int64, err error) {
	w := &writer{sum: sha256.New()}
	buffered := bufio.NewWriter(to)
	w.to = io.MultiWriter(buffered, w.sum)
	err = db.Snapshot(ctx, func(ctx context.Context, tx *database.Tx) error {
		history, err := tx.History(ctx)
		if err != nil {
			return err
		}
		if len(history) == 0 {
			return errors.New("the database is empty: no manager has used it")
		}
		if err := w.line(Header{Format: format, Version: version, Created: time.Now().UTC(), Migrations: history}); err != nil {
			return err
		}
		return w.tables(ctx, tx)
	})
	if err == nil {
		err = w.line(end{Rows: w.rows, SHA256: hex.EncodeToString(w.sum.Sum(nil))})
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return 0, fmt.Errorf("writing a backup: %w", err)
	}
	return w.rows, nil
}

type writer struct {
	to   io.Writer
	sum  hash.Hash
	rows int64
}

func (w *writer) line(of any) error {
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	if len(text) >= maxLine {
		return fmt.Errorf("a row has %d bytes, more than a restore reads", len(text))
	}
	_, err = w.to.Write(append(text, '\n'))
	return err
}

func (w *writer) tables(ctx context.Context, tx *database.Tx) error {
	all, err := tx.Tables(ctx)
	if err != nil {
		return err
	}
	last, err := tx.LastIDs(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Name == "migrations" {
			continue
		}
		if err := w.table(ctx, tx, t, last[t.Name]); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

func (w *writer) table(ctx context.Context, tx *database.Tx, t database.Table, last int64) error {
	about := table{Table: t.Name, LastID: last}
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		if c.Kind == "" {
			return fmt.Errorf("the column %s has a type that no manager makes: the store needs a database, or a schema, of its own", c.Name)
		}
		about.Columns, about.Kinds, columns[i] = append(about.Columns, c.Name), append(about.Kinds, c.Kind), quoted(c.Name)
	}
	if err := w.line(about); err != nil {
		return err
	}
	values, row := valuesOf(about.Kinds)
	return database.Each(ctx, tx, func(scan database.Scan) error {
		if err := scan(values...); err != nil {
			return err
		}
		w.rows++
		return w.line(row())
	}, `SELECT `+strings.Join(columns, ", ")+` FROM `+quoted(t.Name))
}

// valuesOf returns the destinations for scanning a row, and a function that returns the scanned row as a line has it.
func valuesOf(kinds []database.Kind) (values []any, row func() []any) {
	for _, kind := range kinds {
		switch kind {
		case database.Integer:
			values = append(values, new(sql.Null[int64]))
		case database.Real:
			values = append(values, new(sql.Null[float64]))
		case database.Bytes:
			values = append(values, new(sql.Null[[]byte]))
		default:
			values = append(values, new(sql.Null[string]))
		}
	}
	return values, func() []any {
		line := make([]any, len(values))
		for i, v := range values {
			line[i] = plain(v)
		}
		return line
	}
}

// plain returns a value in the form of a line: nil for NULL, and base64 for bytes.
func plain(value any) any {
	switch v := value.(type) {
	case *sql.Null[int64]:
		if v.Valid {
			return v.V
		}
	case *sql.Null[float64]:
		if v.Valid {
			return v.V
		}
	case *sql.Null[[]byte]:
		if v.Valid {
			return v.V
		}
	case *sql.Null[string]:
		if v.Valid {
			return v.V
		}
	}
	return nil
}
