package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/backup"
	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/postgres"
	"github.com/kubeop/kubeop/internal/store/sqlite"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
	testpostgres "github.com/kubeop/kubeop/internal/testenv/postgres"
)

// kinds returns what makes a new, empty database, by the kinds of databases.
func kinds(t *testing.T) map[string]func() *database.DB {
	server := testpostgres.Start(t)
	opened := func(db *database.DB, err error) *database.DB {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	return map[string]func() *database.DB{
		"SQLite":     func() *database.DB { return opened(sqlite.Connect(filepath.Join(t.TempDir(), "manager.db"))) },
		"PostgreSQL": func() *database.DB { return opened(postgres.Connect(t.Context(), server.Database())) },
	}
}

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// used fills a database with one of each thing, and many events.
func used(t *testing.T, db *database.DB) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(s.OfferSetup(t.Context(), []byte("code"), now, now.Add(time.Hour)))
	for i := range 1200 {
		id := fmt.Sprintf("t%d", i)
		check(s.CreateToken(t.Context(), store.Token{ID: id, Name: "é \"\n<&>\u2028\x00", Hash: []byte("\x00\xff" + id), Scopes: []string{"admin"}, Created: now, Expires: now.Add(time.Hour)}, store.Event{At: now, Object: "token/" + id}))
	}
	_, err = s.AddSigningKey(t.Context(), store.SigningKey{Private: store.Sealed{Kind: store.KindSigningKey, ID: "k", Key: "2026", Data: []byte("\x01\x00")}, Created: now, From: now, Until: now.Add(time.Hour)})
	check(err)
	for _, key := range []string{"answered", "open"} {
		_, err = s.BeginRequest(t.Context(), store.Request{Caller: "t1", Key: key, Hash: []byte("h"), Created: now, Expires: now.Add(time.Hour)})
		check(err)
	}
	check(s.AddMinute(t.Context(), store.Minute{Cluster: "local", Begin: now, Groups: []meter.Group{meter.OfPods}, Used: map[store.Place]store.Amounts{
		{Tenant: "acme", Project: "shop", App: "web", Cluster: "local"}: {meter.Pods: meter.Of(big.NewInt(60), 0)},
	}}))
	check(s.FinishRequest(t.Context(), store.Request{Caller: "t1", Key: "answered", Hash: []byte("h"), Answer: []byte("\x00")}, store.Event{At: now, Action: "x"}))
	return s
}

func write(t *testing.T, db *database.DB) string {
	t.Helper()
	var file bytes.Buffer
	if _, err := backup.Write(t.Context(), db, &file, "v1"); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// rowsOf returns the lines of a backup that two of the same rows share: all but the header, which has a time, and the end, which has its sum.
func rowsOf(file string) map[string]int {
	lines := strings.Split(strings.TrimSuffix(file, "\n"), "\n")
	rows := map[string]int{}
	for _, line := range lines[1 : len(lines)-1] {
		rows[line]++
	}
	return rows
}

func TestABackupIsRestoredIntoEitherKindAsItWas(t *testing.T) {
	all := kinds(t)
	for from, open := range all {
		for to, empty := range all {
			t.Run(from+" to "+to, func(t *testing.T) {
				db := open()
				before := used(t, db)
				// The last event is removed, and its ID is not given out again.
				if err := before.CreateToken(t.Context(), store.Token{ID: "last", Hash: []byte("last")}, store.Event{Object: "token/last"}); err != nil {
					t.Fatal(err)
				}
				if err := before.Sweep(t.Context(), now); err != nil {
					t.Fatal(err)
				}
				file := write(t, db)
				restored := empty()
				header, rows, err := backup.Restore(t.Context(), restored, strings.NewReader(file), sqlstore.Migrations())
				if err != nil || rows == 0 || header.Version != "v1" {
					t.Fatalf("%v: %d rows of %+v", err, rows, header)
				}
				if diff := cmp.Diff(rowsOf(file), rowsOf(write(t, restored))); diff != "" {
					t.Errorf("-backup +backup of what was restored:\n%s", diff)
				}
				if id := record(t, restored); id != 1203 {
					t.Errorf("the next event has the ID %d", id)
				}
			})
		}
	}
}

// record records an event in a database, and returns its ID.
func record(t *testing.T, db *database.DB) int64 {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RecordEvent(t.Context(), store.Event{Action: "x"}); err != nil {
		t.Fatal(err)
	}
	events, err := s.ListEvents(t.Context(), "", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	return events[0].ID
}

// TestABackupHasOneMoment: each write makes a token and its event.
func TestABackupHasOneMoment(t *testing.T) {
	for kind, open := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			db := open()
			s := used(t, db)
			ctx, stop := context.WithCancel(t.Context())
			written := make(chan struct{})
			go func() {
				defer close(written)
				for i := 0; ctx.Err() == nil; i++ {
					id := fmt.Sprintf("more%d", i)
					if err := s.CreateToken(t.Context(), store.Token{ID: id, Hash: []byte(id)}, store.Event{Object: "token/" + id}); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			for range 5 {
				file := write(t, db)
				tokens, events := strings.Count(file, "\n[\"more"), strings.Count(file, `"token/more`)
				if tokens != events {
					t.Errorf("the backup has %d tokens and %d events", tokens, events)
				}
			}
			stop()
			<-written
		})
	}
}

// TestAFileThatIsBrokenIsRefusedAndLeavesNothing cuts a backup and changes it at many places.
func TestAFileThatIsBrokenIsRefusedAndLeavesNothing(t *testing.T) {
	for kind, open := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			db := open()
			used(t, db)
			file, empty := write(t, db), open()
			refused := func(name, text, want string) {
				t.Helper()
				if _, _, err := backup.Restore(t.Context(), empty, strings.NewReader(text), sqlstore.Migrations()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: Restore returned %v, want %s", name, err, want)
				}
			}
			for i := range 40 {
				refused("a cut file", file[:i*len(file)/40], "backup")
			}
			refused("without the end of the last line", file[:len(file)-1], "cut off")
			lines := strings.SplitAfter(file, "\n")
			refused("without the last row", strings.Join(append(lines[:len(lines)-3:len(lines)-3], lines[len(lines)-2]), ""), "checksum")
			refused("without the first table", strings.Join(append(lines[:1:1], lines[2:]...), ""), "")
			refused("with more after it", file+"x", "checksum")
			refused("twice", file+file, "checksum")
			refused("another name", strings.Replace(file, `"t7"`, `"t8"`, 1), "")
			refused("another table", strings.Replace(file, `{"table":"tokens"`, `{"table":"pg_authid"`, 1), `"pg_authid"`)
			refused("the table of migrations", strings.Replace(file, `{"table":"tokens"`, `{"table":"migrations"`, 1), `"migrations"`)
			refused("another column", strings.Replace(file, `"columns":["id"`, `"columns":["id\" = 1 --"`, 1), "column")
			refused("another kind of value", strings.Replace(file, `["t7",`, `[7,`, 1), "is no text")
			refused("no backup", "This is text.\n", "no backup")
			refused("an empty file", "", "no backup")
			refused("a newer form", strings.Replace(file, `"kubeopBackup":1`, `"kubeopBackup":2`, 1), "newer manager, v1")
			refused("a newer schema", strings.Replace(file, `"migrations":[`, `"migrations":[`+strings.Repeat(`"",`, 200), 1), "a manager that is newer than this one migrated the database of the backup, which v1 made")
			refused("another history", strings.Replace(file, `"migrations":["tokens"`, `"migrations":["coupons"`, 1), "another history")
			if _, _, err := backup.Restore(t.Context(), empty, strings.NewReader(file), sqlstore.Migrations()); err != nil {
				t.Errorf("after all that the database is not empty: %v", err)
			}
			refused("into one that is not empty", file, "is not empty")
		})
	}
}

// TestABackupOfAnOlderManagerGetsWhatMigrationsMakeOfIt has a migration that changes rows.
func TestABackupOfAnOlderManagerGetsWhatMigrationsMakeOfIt(t *testing.T) {
	for kind, open := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			db := open()
			used(t, db)
			newer := append(sqlstore.Migrations(), database.Migration{Name: "counted", Up: `ALTER TABLE tokens ADD COLUMN counted INTEGER NOT NULL DEFAULT 0; UPDATE tokens SET counted = 7`})
			into := open()
			if _, _, err := backup.Restore(t.Context(), into, strings.NewReader(write(t, db)), newer); err != nil {
				t.Fatal(err)
			}
			n, err := database.One(t.Context(), into, database.Int64, `SELECT count(*) FROM tokens WHERE counted = 7`)
			if err != nil || n != 1200 {
				t.Errorf("%v: %d tokens were migrated", err, n)
			}
		})
	}
}
