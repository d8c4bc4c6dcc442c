package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/storetest"
)

func TestConformance(t *testing.T) {
	dirs := map[string]string{}
	storetest.Run(t, func(t *testing.T) store.Store {
		t.Helper()
		if dirs[t.Name()] == "" {
			dirs[t.Name()] = t.TempDir()
		}
		return open(t, filepath.Join(dirs[t.Name()], "manager.db"))
	})
}

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnlyTheOwnerMayReadTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?#%.db")
	s := open(t, path)
	defer s.Close()
	if err := s.CreateToken(t.Context(), store.Token{ID: "a", Hash: []byte("h")}, store.Event{}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%v: %q", err, files)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
}

// TestListsOfATenantUseItsIndex: otherwise a list of a small tenant would read those of all others.
func TestListsOfATenantUseItsIndex(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "manager.db"))
	defer s.Close()
	for _, table := range []string{"tokens", "events"} {
		where, arguments := ofTenant("acme")
		var plan string
		var number int
		err := s.db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN SELECT * FROM `+table+` WHERE `+where+`id > ? ORDER BY id LIMIT 10`, append(arguments, 0)...).Scan(&number, &number, &number, &plan)
		if err != nil || !strings.Contains(plan, table+"_by_tenant (tenant=? AND ") {
			t.Errorf("%s: %v: %s", table, err, plan)
		}
	}
}

func TestAFolderThatIsNotThereIsNamed(t *testing.T) {
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "missing", "manager.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open returned %v", err)
	}
}

func TestAFileThatIsNoDatabaseIsLeftAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	const text = "This is no database, and somebody may still want it. It is longer than the header of one, which has a hundred bytes."
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); err == nil {
		t.Error("it is opened")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != text {
		t.Errorf("%v: it is now %q", err, data)
	}
}

// TestAStoreThatIsFullRefusesWritesAndReadsOn limits the pages of the database.
func TestAStoreThatIsFullRefusesWritesAndReadsOn(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "manager.db"))
	defer s.Close()
	s.db.SetMaxOpenConns(1) // The limit is of a connection.
	var pages int
	if err := s.db.QueryRowContext(t.Context(), `PRAGMA page_count`).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), `PRAGMA max_page_count = 12`); err != nil {
		t.Fatal(err)
	}
	stored := 0
	var full error
	for full == nil && stored < 10_000 {
		id := time.Duration(stored).String()
		if full = s.CreateToken(t.Context(), store.Token{ID: id, Hash: []byte(id)}, store.Event{Object: id}); full == nil {
			stored++
		}
	}
	if full == nil || stored == 0 {
		t.Fatalf("%d tokens were stored, from %d pages on", stored, pages)
	}
	tokens, err := s.ListTokens(t.Context(), "", "", 10_000)
	events, also := s.ListEvents(t.Context(), "", 0, 10_000)
	if errors.Join(err, also, s.Ping(t.Context())) != nil || len(tokens) != stored || len(events) != stored {
		t.Errorf("%v %v: of %d tokens it has %d, and %d events", err, also, stored, len(tokens), len(events))
	}
}

// TestProgramsThatStartAtOnceMigrateOnce opens a new file many times at once.
func TestProgramsThatStartAtOnceMigrateOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	// A newer program has migrated it further.
	s := open(t, path)
	if _, err := s.db.ExecContext(t.Context(), `INSERT INTO migrations (version) VALUES (1000)`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Close(); err != nil {
		t.Error(err)
	}
}
