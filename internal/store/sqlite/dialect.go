package sqlite

import (
	"context"

	"github.com/kubeop/kubeop/internal/store/database"
)

// dialect needs no locks: a transaction that writes locks the file from its beginning, and only one process uses it.
var dialect = &database.Dialect{
	Name: "SQLite",
	Schema: database.Schema{
		Columns: `SELECT t.name, c.name, c.type FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.cid`,
		Kinds:   map[string]database.Kind{"TEXT": database.Text, "INTEGER": database.Integer, "BLOB": database.Bytes, "REAL": database.Real},
		Last:    last, SetLast: setLast,
	},
	OneWriter: true,
	// While another program has the file, such as a backup.
	Retryable: isBusy,
}

// last returns the counters that SQLite keeps for tables with AUTOINCREMENT.
func last(ctx context.Context, tx *database.Tx) (map[string]int64, error) {
	all := map[string]int64{}
	_, err := database.All(ctx, tx, func(scan database.Scan) (none struct{}, err error) {
		table, id := "", int64(0)
		err = scan(&table, &id)
		all[table] = id
		return none, err
	}, `SELECT name, seq FROM sqlite_sequence`)
	return all, err
}

func setLast(ctx context.Context, tx *database.Tx, table string, last int64) error {
	if _, err := tx.Exec(ctx, `DELETE FROM sqlite_sequence WHERE name = ?`, table); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, table, last)
	return err
}
