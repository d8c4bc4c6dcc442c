package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/store/sqlite"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
)

// TestListsOfATenantUseItsIndex: otherwise a list of a small tenant would read those of all others.
func TestListsOfATenantUseItsIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"tokens", "events", "webhooks"} {
		where, arguments := sqlstore.OfTenant("acme")
		var plan string
		var number int
		err := db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN SELECT * FROM `+table+` WHERE `+where+`id > ? ORDER BY id LIMIT 10`, append(arguments, 0)...).Scan(&number, &number, &number, &plan)
		if err != nil || !strings.Contains(plan, table+"_by_tenant (tenant=? AND ") {
			t.Errorf("%s: %v: %s", table, err, plan)
		}
	}
}
