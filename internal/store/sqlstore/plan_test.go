package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/store"
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

// TestAPageOfUsageIsNotSorted: it is read in the order of two indexes, so it costs what is in it, and not what is kept.
func TestAPageOfUsageIsNotSorted(t *testing.T) {
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
	for tenant, want := range map[string]string{"acme": "(tenant=? AND (project,app,cluster)>(?,?,?))", "": "((tenant,project,app,cluster)>(?,?,?,?))"} {
		statement, arguments := sqlstore.UsageStatement(store.UsageQuery{Tenant: tenant, Limit: 10})
		rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var number int
			var step string
			if err := rows.Scan(&number, &number, &number, &step); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, step)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if len(plan) != 2 || !strings.Contains(plan[0], "usage_places USING") || !strings.Contains(plan[0], want) || !strings.Contains(plan[1], "usage_hours USING") || !strings.Contains(plan[1], "(place=? AND hour>? AND hour<?)") {
			t.Errorf("%q: %q", tenant, plan)
		}
	}
}
