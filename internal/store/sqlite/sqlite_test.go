package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
	"github.com/kubeop/kubeop/internal/testenv/storetest"
)

func TestSQLitePassesTheTestsOfEveryStore(t *testing.T) {
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

// connects opens an empty database file, as often as there are results.
func connects(t *testing.T) (one, other *database.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager.db")
	both := [2]*database.DB{}
	for i := range both {
		db, err := Connect(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		both[i] = db
	}
	return both[0], both[1]
}

// holds has a transaction write until release is called, which returns its error.
func holds(t *testing.T, db *database.DB) (release func() error) {
	t.Helper()
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- db.WriteLong(t.Context(), "", func(context.Context, *database.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	return func() error {
		close(end)
		return <-ended
	}
}

func nothing(context.Context, *database.Tx) error { return nil }

// TestWritersThatWaitLeaveConnectionsForReads: there are more of them than connections.
func TestWritersThatWaitLeaveConnectionsForReads(t *testing.T) {
	db, _ := connects(t)
	release := holds(t, db)
	waiting := make(chan error)
	for range 2 * connections {
		go func() { waiting <- db.Write(t.Context(), "", nothing) }()
	}
	late, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := db.Write(late, "", nothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write beside another: %v", err)
	}
	if _, err := database.All(t.Context(), db, func(scan database.Scan) (n int, err error) { return n, scan(&n) }, `SELECT 1`); err != nil {
		t.Errorf("a read beside %d writers: %v", 2*connections, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	for range 2 * connections {
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	}
}

// TestAWriteIsTriedAgainWhileAnotherProgramHasTheFile, for longer than SQLite itself waits.
func TestAWriteIsTriedAgainWhileAnotherProgramHasTheFile(t *testing.T) {
	t.Parallel()
	db, other := connects(t)
	release := holds(t, other)
	written := make(chan error)
	go func() { written <- db.Write(t.Context(), "", nothing) }()
	select {
	case err := <-written:
		t.Errorf("a write ended while another program had the file: %v", err)
	case <-time.After(busyTimeout + time.Second):
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if err := <-written; err != nil {
		t.Errorf("after the other program: %v", err)
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
