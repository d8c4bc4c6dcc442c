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

// Column is a column. Its kind is "" if the migrations of a manager make no such column.
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

// LastIDs returns the greatest ID that each numbered table has assigned.
func (tx *Tx) LastIDs(ctx context.Context) (map[string]int64, error) {
	return tx.dialect.Schema.Last(ctx, tx)
}

// SetLastID makes a table assign IDs greater than last.
func (tx *Tx) SetLastID(ctx context.Context, table string, last int64) error {
	return tx.dialect.Schema.SetLast(ctx, tx, table, last)
}
