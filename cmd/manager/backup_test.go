package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
	"github.com/kubeop/kubeop/internal/testenv/postgres"
)

// manage runs a command with an input, and returns what it wrote.
func manage(t *testing.T, input string, arguments ...string) (out string, err error) {
	t.Helper()
	out, _, err = manageWithMessages(t, input, arguments...)
	return out, err
}

// manageWithMessages also returns what the command printed for people.
func manageWithMessages(t *testing.T, input string, arguments ...string) (out, printed string, err error) {
	t.Helper()
	var written, messages bytes.Buffer
	cmd := command()
	cmd.SetIn(strings.NewReader(input))
	cmd.SetOut(&written)
	cmd.SetErr(&messages)
	cmd.SetArgs(arguments)
	err = cmd.ExecuteContext(t.Context())
	return written.String(), messages.String(), err
}

// TestAStoreMovesToPostgreSQLAndBack: by a file, and by the standard input and output, while the store is in use.
func TestAStoreMovesToPostgreSQLAndBack(t *testing.T) {
	server, dir := postgres.Start(t), t.TempDir()
	url, file := server.Database(), filepath.Join(t.TempDir(), "a.backup")
	t.Setenv("DATA_DIR", dir)
	if _, err := manage(t, "", "backup", file); err == nil || !strings.Contains(err.Error(), "DATA_DIR has no store") {
		t.Errorf("without a store: %v", err)
	}
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "manager.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateToken(t.Context(), store.Token{ID: "a", Hash: []byte("hash")}, store.Event{Object: "token/a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := manage(t, "", "backup", file); err != nil {
		t.Fatal(err)
	}
	if _, err := manage(t, "", "backup", file); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("the backup is written over: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: others may read the backup: %s", err, info.Mode())
	}
	if files, err := os.ReadDir(filepath.Dir(file)); err != nil || len(files) != 1 {
		t.Errorf("%v: %v are left", err, files)
	}
	if _, err := manage(t, "", "restore", file); err == nil || !strings.Contains(err.Error(), "--set-aside") {
		t.Errorf("over a store: %v", err)
	}
	if _, err := manage(t, "", "restore", file, "--set-aside"); err == nil || !strings.Contains(err.Error(), "a manager uses the store") {
		t.Errorf("over a store that is used: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DATABASE_URL", url)
	if _, err := manage(t, "", "restore", file); err != nil {
		t.Fatal(err)
	}
	if _, err := manage(t, "", "restore", file); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("twice: %v", err)
	}
	text, err := manage(t, "", "backup", "-")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DATABASE_URL", "")
	if _, err := manage(t, text[:len(text)-1], "restore", "-", "--set-aside"); err == nil {
		t.Error("a backup that is cut off is restored")
	}
	_, printed, err := manageWithMessages(t, text, "restore", "-", "--set-aside")
	if err != nil || !strings.Contains(printed, "Restored ") || !strings.Contains(printed, filepath.Join(dir, "manager.db.")) {
		t.Fatalf("%v: it printed %q", err, printed)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v: the folder has %v", err, files)
	}
	if s, err = sqlite.Open(t.Context(), filepath.Join(dir, "manager.db")); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.TokenByHash(t.Context(), []byte("hash")); err != nil {
		t.Errorf("the token is lost: %v", err)
	}
}

// TestARestoreThatFailsReportsNoSuccess: what the backup has is in a new file then, which cannot get its name.
func TestARestoreThatFailsReportsNoSuccess(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DATA_DIR", dir)
	path := filepath.Join(dir, "manager.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := manage(t, "", "backup", "-")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	cmd := command()
	cmd.SetIn(&startsManager{text: strings.NewReader(text), start: func() {
		if s, err = sqlite.Open(t.Context(), path); err != nil {
			t.Error(err)
		}
	}})
	cmd.SetErr(&printed)
	cmd.SetArgs([]string{"restore", "-"})
	err = cmd.ExecuteContext(t.Context())
	defer s.Close()
	if err == nil || !strings.Contains(err.Error(), "a manager uses the store") || strings.Contains(printed.String(), "Restored ") {
		t.Errorf("restore returned %v, and printed %q", err, printed.String())
	}
}

// startsManager is an input during which somebody starts a manager.
type startsManager struct {
	text  *strings.Reader
	start func()
}

func (m *startsManager) Read(p []byte) (int, error) {
	if m.start != nil {
		m.start()
		m.start = nil
	}
	return m.text.Read(p)
}
