// Package postgres gives tests a real PostgreSQL, with a folder and a socket of its own.
package postgres

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // It is the driver.
)

// Password is that of the user. It is only for tests.
const Password = "pass word:@/?#%"

// account is the only user of PostgreSQL, and owns its databases.
const account = "kubeop"

// startTimeout is how long PostgreSQL may take to start or stop.
const startTimeout = 2 * time.Minute

// Server is a PostgreSQL. It has no port; its socket asks for the password.
type Server struct {
	t        testing.TB
	bin, dir string
	as       *syscall.Credential
	running  *exec.Cmd
	made     atomic.Int32
}

// Start makes and starts a PostgreSQL that runs until the test ends. Where none is installed the test is skipped, but never in CI.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := &Server{t: t, bin: find(t)}
	var err error
	// A path of its own: the folders of a test are for its user only, and PostgreSQL refuses to run as root.
	if s.dir, err = os.MkdirTemp("/tmp", "kubeop-pg-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(s.dir); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() == 0 {
		s.as = other(t, s.dir)
	}
	password := filepath.Join(s.dir, "password")
	s.write(password, Password)
	// The database sorts text as people do, unlike SQLite, so that nothing depends on it.
	s.command("initdb", "-D", s.data(), "-U", account, "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8", "--locale", "C.UTF-8", "--locale-provider", "icu", "--icu-locale", "en-US", "--no-sync")
	all := append([]string{"listen_addresses = ''", "unix_socket_directories = '" + s.dir + "'", "max_connections = 200", "fsync = off"}, settings...)
	s.write(filepath.Join(s.data(), "postgresql.auto.conf"), strings.Join(all, "\n")+"\n")
	t.Cleanup(s.Stop)
	s.Start()
	return s
}

// find returns the folder of the programs of the newest PostgreSQL.
func find(t testing.TB) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		t.Fatal(err)
	}
	if one, err := exec.LookPath("initdb"); err == nil {
		found = append(found, one)
	}
	if len(found) == 0 {
		const why = "there is no PostgreSQL: `make postgresql` installs it on Debian"
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) }))
}

// version returns the version of PostgreSQL in the path of its initdb in Debian, 0 in others.
func version(path string) float64 {
	of, err := strconv.ParseFloat(filepath.Base(filepath.Dir(filepath.Dir(path))), 64)
	if err != nil {
		return 0
	}
	return of
}

// other gives a folder to the user nobody, and returns how a program runs as it.
func other(t testing.TB, dir string) *syscall.Credential {
	t.Helper()
	found, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// write writes a file that PostgreSQL may read.
func (s *Server) write(path, text string) {
	s.t.Helper()
	err := os.WriteFile(path, []byte(text), 0o600)
	if err == nil && s.as != nil {
		err = os.Chown(path, int(s.as.Uid), int(s.as.Gid))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) program(name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), arguments...)
	cmd.Dir = s.dir
	// PostgreSQL ends with the test, also if that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGQUIT, Setpgid: true}
	return cmd
}

func (s *Server) command(name string, arguments ...string) {
	s.t.Helper()
	if out, err := s.program(name, arguments...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// Start starts it again after Stop or Kill.
func (s *Server) Start() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.running = s.program("postgres", "-D", s.data())
	s.running.Stdout, s.running.Stderr = log, log
	if err := s.running.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		err := s.Try("postgres", "SELECT 1")
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("PostgreSQL does not start: %v\n%s", err, s.Log())
		}
	}
}

// Stop stops it, and ends all connections. It may be stopped already.
func (s *Server) Stop() { s.end(syscall.SIGINT) }

// Kill ends it as a loss of power does for those who are connected.
func (s *Server) Kill() { s.end(syscall.SIGQUIT) }

func (s *Server) end(by syscall.Signal) {
	s.t.Helper()
	if s.running == nil {
		return
	}
	ended := s.running
	s.running = nil
	if err := ended.Process.Signal(by); err != nil {
		s.t.Error(err)
	}
	late := time.AfterFunc(startTimeout, func() { _ = ended.Process.Kill() })
	defer late.Stop()
	var exit *exec.ExitError
	if err := ended.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Error(err)
	}
}

// Log is what it wrote.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}

// URL returns the URL of a database.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(account, Password), Path: "/" + database, RawQuery: url.Values{"host": {s.dir}}.Encode()}
	return u.String()
}

// Database makes an empty database, and returns its URL.
func (s *Server) Database() string {
	s.t.Helper()
	name := fmt.Sprintf("db%d", s.made.Add(1))
	s.Exec("postgres", "CREATE DATABASE "+name)
	return s.URL(name)
}

// Exec runs a statement in a database.
func (s *Server) Exec(database, statement string) {
	s.t.Helper()
	if err := s.Try(database, statement); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

// Try is Exec that may fail.
func (s *Server) Try(database, statement string) error {
	db, err := sql.Open("pgx", s.URL(database))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}
