package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/internal/store/database"
)

// The errors of a file.
var (
	errNoBackup = errors.New("this is no backup of a manager's store")
	errBroken   = errors.New("the backup is cut off or was changed: its checksum is wrong. Use another one")
)

// batch is how many values one statement inserts at most. SQLite allows 32,766.
const batch = 5000

// Restore reads a backup into an empty database, in one transaction: if anything is wrong, the database stays empty. Afterwards the database has all
// migrations, also those that are newer than the backup. It returns the header, and the number of rows.
func Restore(ctx context.Context, db *database.DB, from io.Reader, migrations []database.Migration) (h Header, rows int64, err error) {
	r := &reader{from: bufio.NewReader(from), sum: sha256.New()}
	if h, err = r.header(migrations); err != nil {
		return h, 0, err
	}
	err = db.WriteLong(ctx, database.Migrating, func(ctx context.Context, tx *database.Tx) error {
		tables, err := tx.Tables(ctx)
		if err != nil {
			return err
		}
		if len(tables) > 0 {
			return fmt.Errorf("the database is not empty: it has the table %s. A restore needs a new one", tables[0].Name)
		}
		// The rows are inserted before the later migrations run, so these convert them too.
		if err := tx.Migrate(ctx, migrations[:len(h.Migrations)]); err != nil {
			return err
		}
		if err := r.tables(ctx, tx); err != nil {
			return err
		}
		return tx.Migrate(ctx, migrations)
	})
	if err != nil {
		return h, 0, fmt.Errorf("restoring a backup: %w", err)
	}
	return h, r.rows, nil
}

type reader struct {
	from *bufio.Reader
	sum  hash.Hash
	rows int64
}

// line returns the next line. The checksum does not contain it yet.
func (r *reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxLine:
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return nil, errBroken
		default:
			return nil, err
		}
	}
}

func (r *reader) header(migrations []database.Migration) (h Header, err error) {
	line, err := r.line()
	if err != nil || json.Unmarshal(line, &h) != nil || h.Format == 0 || len(h.Migrations) == 0 {
		return h, errors.Join(errNoBackup, err)
	}
	_, _ = r.sum.Write(line) // It cannot fail.
	if h.Format != format {
		return h, fmt.Errorf("a newer manager, %s, made the backup: use that version, or a later one", h.Version)
	}
	if len(h.Migrations) > len(migrations) {
		// The version of the program that made the backup may be older than its migrations, after a rollback.
		return h, fmt.Errorf("a manager that is newer than this one migrated the database of the backup, which %s made: use the newest version that ran on that database, or a later one", h.Version)
	}
	for i, name := range h.Migrations {
		if name != "" && name != migrations[i].Name {
			return h, fmt.Errorf("a program with another history made the backup: its migration %d is %q, and that of this program %q", i+1, name, migrations[i].Name)
		}
	}
	return h, nil
}

// tables reads all tables, to the end of the file.
func (r *reader) tables(ctx context.Context, tx *database.Tx) error {
	known, err := tx.Tables(ctx)
	if err != nil {
		return err
	}
	var into *inserter
	for {
		line, err := r.line()
		if err != nil {
			return err
		}
		var ended end
		if line[0] == '{' && json.Unmarshal(line, &ended) == nil && ended.SHA256 != "" {
			return errors.Join(into.flush(ctx, tx), r.check(ended))
		}
		_, _ = r.sum.Write(line) // It cannot fail.
		if line[0] == '[' && into != nil {
			r.rows++
			err = into.row(ctx, tx, line)
		} else {
			err = into.flush(ctx, tx)
			if err == nil {
				into, err = r.table(ctx, tx, line, known)
			}
		}
		if err != nil {
			return err
		}
	}
}

// check compares the last line with what was read.
func (r *reader) check(ended end) error {
	if ended.SHA256 != hex.EncodeToString(r.sum.Sum(nil)) || ended.Rows != r.rows {
		return errBroken
	}
	if _, err := r.from.ReadByte(); !errors.Is(err, io.EOF) {
		return errBroken
	}
	return nil
}

// table begins a table. The database must have it, with these columns.
func (r *reader) table(ctx context.Context, tx *database.Tx, line []byte, known []database.Table) (*inserter, error) {
	var about table
	if err := json.Unmarshal(line, &about); err != nil {
		return nil, errors.Join(errBroken, err)
	}
	at := slices.IndexFunc(known, func(t database.Table) bool { return t.Name == about.Table })
	if at < 0 || about.Table == "migrations" || len(about.Columns) != len(about.Kinds) || len(about.Columns) == 0 {
		return nil, fmt.Errorf("the backup has the table %q, and the migrations of its header make none of this name", about.Table)
	}
	into := &inserter{kinds: about.Kinds}
	columns := make([]string, len(about.Columns))
	for i, name := range about.Columns {
		if !slices.Contains(known[at].Columns, database.Column{Name: name, Kind: about.Kinds[i]}) {
			return nil, fmt.Errorf("the backup has a column %q of the table %q, and the migrations of its header make another one, or none", name, about.Table)
		}
		columns[i] = quoted(name)
	}
	into.insert = `INSERT INTO ` + quoted(about.Table) + ` (` + strings.Join(columns, ", ") + `) VALUES `
	into.place = `(?` + strings.Repeat(", ?", len(columns)-1) + `)`
	if about.LastID > 0 {
		return into, tx.SetLastID(ctx, about.Table, about.LastID)
	}
	return into, nil
}

// inserter inserts the rows of a table in batches.
type inserter struct {
	kinds         []database.Kind
	insert, place string
	values        []any
}

func (i *inserter) row(ctx context.Context, tx *database.Tx, line []byte) error {
	var cells []any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if err := decoder.Decode(&cells); err != nil || len(cells) != len(i.kinds) {
		return errors.Join(errBroken, err)
	}
	for at, cell := range cells {
		value, err := valueOf(cell, i.kinds[at])
		if err != nil {
			return errors.Join(errBroken, err)
		}
		i.values = append(i.values, value)
	}
	if len(i.values)+len(i.kinds) > batch {
		return i.flush(ctx, tx)
	}
	return nil
}

// flush inserts the remaining rows. It may be called on a nil inserter.
func (i *inserter) flush(ctx context.Context, tx *database.Tx) error {
	if i == nil || len(i.values) == 0 {
		return nil
	}
	places := strings.Repeat(", "+i.place, len(i.values)/len(i.kinds))[2:]
	_, err := tx.Exec(ctx, i.insert+places, i.values...)
	i.values = i.values[:0]
	return err
}

// valueOf is the opposite of plain.
func valueOf(cell any, kind database.Kind) (any, error) {
	text, isText := cell.(string)
	number, isNumber := cell.(json.Number)
	switch {
	case cell == nil:
		return nil, nil
	case kind == database.Text && isText:
		return text, nil
	case kind == database.Bytes && isText:
		return base64.StdEncoding.DecodeString(text)
	case kind == database.Integer && isNumber:
		return number.Int64()
	case kind == database.Real && isNumber:
		return number.Float64()
	}
	return nil, fmt.Errorf("a value is no %s", kind)
}
