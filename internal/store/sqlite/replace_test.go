package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
)

// killed returns the path of a store with so many tokens whose manager was killed: its last writes are in the WAL only.
func killed(t *testing.T, tokens int) string {
	t.Helper()
	running := filepath.Join(t.TempDir(), "manager.db")
	s := open(t, running)
	defer s.Close()
	for i := range tokens {
		id := fmt.Sprint(i)
		if err := s.CreateToken(t.Context(), store.Token{ID: id, Hash: []byte(id)}, store.Event{Object: id}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "manager.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(running + suffix)
		if err != nil || len(data) == 0 {
			t.Fatalf("%v: manager.db%s has %d bytes", err, suffix, len(data))
		}
		if err := os.WriteFile(path+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// filled is a fill of Replace: a store with so many tokens.
func filled(t *testing.T, tokens int) func(*database.DB) error {
	return func(db *database.DB) error {
		s, err := sqlstore.Open(t.Context(), db)
		if err != nil {
			return err
		}
		for i := range tokens {
			id := fmt.Sprint("restored", i)
			if err := s.CreateToken(t.Context(), store.Token{ID: id, Hash: []byte(id)}, store.Event{Object: id}); err != nil {
				return err
			}
		}
		return nil
	}
}

// has compares the tokens of a store: their number, and how their IDs begin.
func has(t *testing.T, path, prefix string, want int) {
	t.Helper()
	s := open(t, path)
	defer s.Close()
	tokens, err := s.ListTokens(t.Context(), "", "", 10_000)
	if err != nil || len(tokens) != want || slices.ContainsFunc(tokens, func(t store.Token) bool { return !strings.HasPrefix(t.ID, prefix) }) {
		t.Errorf("%v: %s has %d tokens, want %d", err, path, len(tokens), want)
	}
}

// TestARestoredStoreIsNotOverlaidByAnotherOnesWAL: SQLite would replay a WAL that lies beside the restored file, whosever it was.
func TestARestoredStoreIsNotOverlaidByAnotherOnesWAL(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"its file was removed": os.Remove, "its file was emptied": func(path string) error { return os.Truncate(path, 0) }, "its file is there": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := killed(t, 50)
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			if _, err := Replace(path, false, filled(t, 60)); err == nil || !strings.Contains(err.Error(), path+"-wal") || !strings.Contains(err.Error(), "--set-aside") {
				t.Errorf("without --set-aside: %v", err)
			}
			kept, err := Replace(path, true, filled(t, 60))
			if err != nil {
				t.Fatal(err)
			}
			has(t, path, "restored", 60)
			if _, err := os.Stat(kept + "-wal"); err != nil {
				t.Error(err)
			}
			if name == "its file is there" {
				has(t, kept, "", 50)
			}
		})
	}
}

// TestABrokenStoreIsSetAsideAsItIs: that is when a restore is needed most.
func TestABrokenStoreIsSetAsideAsItIs(t *testing.T) {
	whole, err := os.ReadFile(killed(t, 50))
	if err != nil {
		t.Fatal(err)
	}
	malformed := slices.Clone(whole)
	for i := 100; i < len(malformed); i++ {
		malformed[i] = 0xff
	}
	for name, data := range map[string][]byte{"no database": []byte(strings.Repeat("This is no database. ", 200)), "a malformed one": malformed, "a cut one": whole[:len(whole)/2+7], "an empty one": {}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "manager.db")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			kept, err := Replace(path, true, filled(t, 3))
			if err != nil {
				t.Fatal(err)
			}
			has(t, path, "restored", 3)
			if now, err := os.ReadFile(kept); err != nil || string(now) != string(data) {
				t.Errorf("%v: what was set aside is changed", err)
			}
		})
	}
}

func TestAStoreThatIsUsedIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	s := open(t, path)
	defer s.Close()
	_, err := Replace(path, true, func(*database.DB) error {
		t.Error("the backup is read before that is known")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "a manager uses the store") {
		t.Errorf("Replace returned %v", err)
	}
}

func TestAManagerThatStartsDuringARestoreKeepsItsStore(t *testing.T) {
	path := killed(t, 50)
	_, err := Replace(path, true, func(db *database.DB) error {
		s := open(t, path)
		t.Cleanup(func() { _ = s.Close() })
		return filled(t, 3)(db)
	})
	if err == nil || !strings.Contains(err.Error(), "a manager uses the store") {
		t.Errorf("Replace returned %v", err)
	}
	has(t, path, "", 50)
}

// TestAReplacementThatFailsLeavesTheStoreInItsPlace: a manager that finds none would begin an empty one.
func TestAReplacementThatFailsLeavesTheStoreInItsPlace(t *testing.T) {
	t.Run("the new file cannot be moved", func(t *testing.T) {
		path := killed(t, 50)
		if kept, err := swap(path+".missing", path); err == nil || kept != "" {
			t.Errorf("swap returned %q, %v", kept, err)
		}
		has(t, path, "", 50)
	})
	t.Run("the WAL cannot be set aside", func(t *testing.T) {
		// With the time the name of the file has 253 bytes, and that of its WAL 257: two more than a name may have.
		was, path := killed(t, 50), filepath.Join(t.TempDir(), strings.Repeat("m", 233))
		if err := errors.Join(os.Rename(was, path), os.Rename(was+"-wal", path+"-wal")); err != nil {
			t.Fatal(err)
		}
		if kept, err := Replace(path, true, filled(t, 3)); err == nil || kept != "" {
			t.Errorf("Replace returned %q, %v", kept, err)
		}
		has(t, path, "", 50)
	})
	t.Run("fill fails", func(t *testing.T) {
		path, broken := killed(t, 50), errors.New("the backup is broken")
		if _, err := Replace(path, true, func(*database.DB) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("Replace returned %v", err)
		}
		has(t, path, "", 50)
	})
}

// TestAnIncompleteFileIsNotPutInItsPlace: another connection keeps SQLite from writing the WAL into the file.
func TestAnIncompleteFileIsNotPutInItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	_, err := Replace(path, false, func(db *database.DB) error {
		if err := filled(t, 3)(db); err != nil {
			return err
		}
		other, err := Connect(path + ".new")
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = other.Close() })
		_, err = other.Exec(t.Context(), `SELECT count(*) FROM tokens`)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "manager.db.new-wal") {
		t.Errorf("Replace returned %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}
