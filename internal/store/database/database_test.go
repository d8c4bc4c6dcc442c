package database_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/postgres"
	"github.com/kubeop/kubeop/internal/store/sqlite"
	testpostgres "github.com/kubeop/kubeop/internal/testenv/postgres"
)

var (
	one   = database.Migration{Name: "one", Up: `CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, data BLOB, share REAL) STRICT; CREATE INDEX a_by_name ON a (name);`}
	two   = database.Migration{Name: "two", Up: `ALTER TABLE a ADD COLUMN more TEXT NOT NULL DEFAULT 'none'`}
	other = database.Migration{Name: "other", Up: `CREATE TABLE b (id TEXT PRIMARY KEY) STRICT`}
	wrong = database.Migration{Name: "wrong", Up: `CREATE TABLE c (id TEXT PRIMARY KEY) STRICT; CREATE TABLE a (id TEXT PRIMARY KEY) STRICT`}
)

// onBoth runs a test on a new database of each kind. open opens it again each time.
func onBoth(t *testing.T, test func(t *testing.T, open func() *database.DB)) {
	t.Helper()
	opened := func(t *testing.T, db *database.DB, err error) *database.DB {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return db
	}
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.db")
		test(t, func() *database.DB {
			db, err := sqlite.Connect(path)
			return opened(t, db, err)
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := testpostgres.Start(t).Database()
		test(t, func() *database.DB {
			db, err := postgres.Connect(t.Context(), url)
			return opened(t, db, err)
		})
	})
}

func TestMigrationsAreAppliedOnceAndWrongOnesAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *database.DB) {
		db := open()
		refused := func(want string, all ...database.Migration) {
			t.Helper()
			if err := db.Migrate(t.Context(), all); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Migrate returned %v, want %s", err, want)
			}
		}
		applied := func(all ...database.Migration) {
			t.Helper()
			if err := db.Migrate(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		applied(one)
		refused("migration 2 (wrong)", one, wrong) // It leaves nothing.
		if _, err := db.Exec(t.Context(), `INSERT INTO a (name) VALUES (?)`, "x"); err != nil {
			t.Fatal(err)
		}
		applied(one, two)
		applied(one, two)
		applied(one) // An older program.
		refused(`the migration 2 of the database is "two", and of this program "other"`, one, other)
		more, err := database.All(t.Context(), db, func(scan database.Scan) (s string, err error) { return s, scan(&s) }, `SELECT more FROM a`)
		if err != nil || len(more) != 1 || more[0] != "none" {
			t.Errorf("%v: the rows from before have %q", err, more)
		}
		if _, err := db.Exec(t.Context(), `DELETE FROM migrations WHERE version = 1`); err != nil {
			t.Fatal(err)
		}
		refused("has the migration 2 and not 1", one, two, other)
	})
}

// TestMigrationsFromBeforeTheyHadNames is about files that a manager wrote before.
func TestMigrationsFromBeforeTheyHadNames(t *testing.T) {
	db, err := sqlite.Connect(filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{`CREATE TABLE migrations (version INTEGER PRIMARY KEY) STRICT`, `INSERT INTO migrations (version) VALUES (1)`, one.Up} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Migrate(t.Context(), []database.Migration{one, two}); err != nil {
		t.Fatal(err)
	}
	err = db.Snapshot(t.Context(), func(ctx context.Context, tx *database.Tx) error {
		history, err := tx.History(ctx)
		if diff := cmp.Diff([]string{"", "two"}, history); diff != "" {
			t.Errorf("-want +history:\n%s", diff)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestATableOfMigrationsThatANewerProgramExtendedIsUsed: an older one leaves it as it is.
func TestATableOfMigrationsThatANewerProgramExtendedIsUsed(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *database.DB) {
		db := open()
		if err := db.Migrate(t.Context(), []database.Migration{one}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(), `ALTER TABLE migrations ADD COLUMN applied TEXT NOT NULL DEFAULT ''`); err != nil {
			t.Fatal(err)
		}
		if err := db.Migrate(t.Context(), []database.Migration{one, two}); err != nil {
			t.Error(err)
		}
	})
}

// TestAMigrationThatWaitsForABackupLetsOthersRead: each read that begins later would wait behind it.
func TestAMigrationThatWaitsForABackupLetsOthersRead(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *database.DB) {
		db, newer, migrated := open(), open(), make(chan error, 1)
		if err := db.Migrate(t.Context(), []database.Migration{one}); err != nil {
			t.Fatal(err)
		}
		count := func(ctx context.Context, of database.Querier) {
			t.Helper()
			if _, err := database.One(ctx, of, database.Int64, `SELECT count(*) FROM a`); err != nil {
				t.Error(err)
			}
		}
		err := db.Snapshot(t.Context(), func(ctx context.Context, tx *database.Tx) error {
			count(ctx, tx)
			go func() { migrated <- newer.Migrate(t.Context(), []database.Migration{one, two}) }()
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				limited, cancel := context.WithTimeout(ctx, time.Second) // A token is looked for as long.
				count(limited, db)
				cancel()
			}
			return nil
		})
		if err := errors.Join(err, <-migrated); err != nil {
			t.Error(err)
		}
	})
}

func TestProgramsThatStartAtOnceMigrateOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *database.DB) {
		all := make([]*database.DB, 6)
		for i := range all {
			all[i] = open()
		}
		// SQLite does not wait while the journal of a new file becomes a WAL.
		if _, err := all[0].Exec(t.Context(), `SELECT 1`); err != nil {
			t.Fatal(err)
		}
		var started sync.WaitGroup
		for _, db := range all {
			started.Go(func() {
				if err := db.Migrate(t.Context(), []database.Migration{one, two, other}); err != nil {
					t.Error(err)
				}
			})
		}
		started.Wait()
	})
}

// TestValuesComeBackAsTheyWere has what the kinds of databases could keep in another way.
func TestValuesComeBackAsTheyWere(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *database.DB) {
		db := open()
		if err := db.Migrate(t.Context(), []database.Migration{one}); err != nil {
			t.Fatal(err)
		}
		type row struct {
			Name  string
			Data  []byte
			Share float64
		}
		rows := []row{{"B", nil, 0.1}, {"a", []byte("\x00\xff"), -1e-300}, {"ä", []byte{'x'}, 1}, {"a b", []byte("?"), 2}}
		err := db.Write(t.Context(), "a", func(ctx context.Context, tx *database.Tx) error {
			for _, r := range rows {
				if n, err := tx.Exec(ctx, `INSERT INTO a (name, data, share) VALUES (?, ?, ?)`, r.Name, r.Data, r.Share); err != nil || n != 1 {
					t.Errorf("%d rows were inserted: %v", n, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// Text is in the order of its bytes.
		want := []row{rows[0], rows[1], rows[3], rows[2]}
		read := func(scan database.Scan) (r row, err error) { return r, scan(&r.Name, &r.Data, &r.Share) }
		got, err := database.All(t.Context(), db, read, `SELECT name, data, share FROM a WHERE (name, id) > (?1, 0) AND name >= ?1 ORDER BY name LIMIT ?2`, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-written +read:\n%s", diff)
		}
		if _, err := database.One(t.Context(), db, read, `SELECT name, data, share FROM a WHERE name = ?`, "b"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
	})
}

func TestASnapshotSeesNothingOfWhatIsWrittenMeanwhile(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *database.DB) {
		db := open()
		if err := db.Migrate(t.Context(), []database.Migration{one}); err != nil {
			t.Fatal(err)
		}
		insert := func(db *database.DB) {
			t.Helper()
			if _, err := db.Exec(t.Context(), `INSERT INTO a (name) VALUES ('x')`); err != nil {
				t.Fatal(err)
			}
		}
		insert(db)
		err := db.Snapshot(t.Context(), func(ctx context.Context, tx *database.Tx) error {
			for range 2 {
				n, err := database.One(ctx, tx, database.Int64, `SELECT count(*) FROM a`)
				if err != nil || n != 1 {
					t.Errorf("%v: there are %d rows", err, n)
				}
				insert(db)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
