package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
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

func open(t *testing.T, path string) *sqlstore.Store {
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

// TestAWriteThatMissedItsTurnIsTriedAgain: of many writers, SQLite can pass one over for all of busyTimeout.
func TestAWriteThatMissedItsTurnIsTriedAgain(t *testing.T) {
	t.Parallel() // The second writer waits for busyTimeout.
	path := filepath.Join(t.TempDir(), "manager.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := Connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	nothing := func(context.Context, *database.Tx) error { return nil }
	err = db.WriteLong(t.Context(), "", func(ctx context.Context, _ *database.Tx) error { return db.WriteLong(ctx, "", nothing) }) // is tried once
	if !isBusy(err) || !dialect.Retryable(err) {
		t.Errorf("a second writer: %v", err)
	}
	if err := db.Write(t.Context(), "", nothing); err != nil {
		t.Errorf("after the first writer: %v", err)
	}
}

// TestAStoreThatIsFullRefusesWritesAndReadsOn limits the pages of the database.
func TestAStoreThatIsFullRefusesWritesAndReadsOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := connect(path, "max_page_count(24)")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fill(t, s)
}

// TestADiskThatIsFullLosesNothingAndReadsGoOn fills a small disk, and frees some of it again.
func TestADiskThatIsFullLosesNothingAndReadsGoOn(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=768k"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("mounting a small disk needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast, path := filepath.Join(dir, "ballast"), filepath.Join(dir, "manager.db")
	if err := os.WriteFile(ballast, make([]byte, 200<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	stored := fill(t, s)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateToken(t.Context(), store.Token{ID: "later", Hash: []byte("later")}, store.Event{Object: "later"}); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	defer s.Close()
	if tokens, err := s.ListTokens(t.Context(), "", "", 10_000); err != nil || len(tokens) != stored+1 {
		t.Errorf("%v: %d tokens were stored, and %d are there after a restart", err, stored+1, len(tokens))
	}
}

// fill stores tokens until there is no room, and checks that what was stored is there, and nothing else. It returns how many there are.
func fill(t *testing.T, s *sqlstore.Store) (stored int) {
	t.Helper()
	var full error
	for full == nil && stored < 10_000 {
		id := fmt.Sprint(stored)
		if full = s.CreateToken(t.Context(), store.Token{ID: id, Hash: []byte(id)}, store.Event{Object: id}); full == nil {
			stored++
		}
	}
	if full == nil || stored == 0 {
		t.Fatalf("%d tokens were stored: %v", stored, full)
	}
	tokens, err := s.ListTokens(t.Context(), "", "", 10_000)
	events, also := s.ListEvents(t.Context(), "", 0, 10_000)
	if errors.Join(err, also, s.Ping(t.Context())) != nil || len(tokens) != stored || len(events) != stored {
		t.Errorf("%v %v: of %d tokens it has %d, and %d events", err, also, stored, len(tokens), len(events))
	}
	return stored
}
