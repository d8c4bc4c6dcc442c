package database

import (
	"context"
	"fmt"
)

// Table is a table with its columns, in their order.
type Table struct {
	Name    string
	Columns []Column
}

// Column is a column. Its kind is "" if it is none that the migrations of a manager make.
type Column struct {
	Name string
	Kind Kind
}

// Tables returns all tables of the database, in the order of their names.
func (tx *Tx) Tables(ctx context.Context) ([]Table, error) {
	type found struct{ table, column, of string }
	all, err := All(ctx, tx, func(scan Scan) (f found, err error) {
		return f, scan(&f.table, &f.column, &f.of)
	}, tx.dialect.Schema.Columns)
	if err != nil {
		return nil, fmt.Errorf("reading which tables there are: %w", err)
	}
	var tables []Table
	for _, f := range all {
		if len(tables) == 0 || tables[len(tables)-1].Name != f.table {
			tables = append(tables, Table{Name: f.table})
		}
		last := &tables[len(tables)-1]
		last.Columns = append(last.Columns, Column{f.column, tx.dialect.Schema.Kinds[f.of]})
	}
	return tables, nil
}

// LastIDs returns the greatest ID that each table gave out, of those that number their rows.
func (tx *Tx) LastIDs(ctx context.Context) (map[string]int64, error) {
	return tx.dialect.Schema.Last(ctx, tx)
}

// SetLastID has a table go on numbering its rows after an ID.
func (tx *Tx) SetLastID(ctx context.Context, table string, last int64) error {
	return tx.dialect.Schema.SetLast(ctx, tx, table, last)
}
