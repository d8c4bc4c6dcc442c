package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/testenv/postgres"
)

// openDB opens a database with a dialect.
func openDB(t *testing.T, url string, in *database.Dialect) *database.DB {
	t.Helper()
	pool, err := openPool(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return database.New(pool, in)
}

// setting returns a setting of a connection, times in milliseconds.
func setting(t *testing.T, db database.Querier, name string) int64 {
	t.Helper()
	value, err := database.One(t.Context(), db, database.Int64, `SELECT setting::bigint FROM pg_settings WHERE name = ?`, name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestConnectionsBeginWithWhatAPoolerTakes: PgBouncer refuses all other settings, unless its ignore_startup_parameters lists them.
func TestConnectionsBeginWithWhatAPoolerTakes(t *testing.T) {
	config, err := Parse("postgres://kubeop@db/kubeop")
	if err != nil {
		t.Fatal(err)
	}
	takes := []string{"client_encoding", "datestyle", "timezone", "standard_conforming_strings", "application_name"}
	for name := range config.RuntimeParams {
		if !slices.Contains(takes, name) {
			t.Errorf("it begins with %s", name)
		}
	}
}

// TestASilentTransactionEndsBeforeThoseThatWaitForIt: whoever waits for the lock of a manager that hangs gets it before its own statement ends.
func TestASilentTransactionEndsBeforeThoseThatWaitForIt(t *testing.T) {
	url := postgres.Start(t).Database()
	db := openDB(t, url, dialect)
	if silent, waiting := setting(t, db, "idle_in_transaction_session_timeout"), setting(t, db, "statement_timeout"); silent <= 0 || waiting != 15_000 || waiting-silent < 3000 {
		t.Errorf("a silent transaction ends after %d ms, and a statement that waits for it after %d ms", silent, waiting)
	}
	if got := setting(t, openDB(t, url+"&statement_timeout=7s", dialect), "statement_timeout"); got != 7000 {
		t.Errorf("statement_timeout of the URL is %d ms", got)
	}
}

func TestLongTransactionsHaveNoTimeouts(t *testing.T) {
	db := openDB(t, postgres.Start(t).Database()+"&statement_timeout=300ms&idle_in_transaction_session_timeout=300ms", dialect)
	long := func(ctx context.Context, tx *database.Tx) error {
		_, slept := tx.Exec(ctx, `SELECT pg_sleep(0.6)`)
		time.Sleep(600 * time.Millisecond)
		_, err := tx.Exec(ctx, `SELECT 1`)
		return errors.Join(slept, err)
	}
	if err := db.WriteLong(t.Context(), "a", long); err != nil {
		t.Errorf("WriteLong: %v", err)
	}
	if err := db.Snapshot(t.Context(), long); err != nil {
		t.Errorf("Snapshot: %v", err)
	}
	if err := db.Write(t.Context(), "a", long); err == nil {
		t.Error("others have none either")
	}
}

// TestALeaderThatHangsLosesTheLead: its connection is silent until it asks again, after three seconds.
func TestALeaderThatHangsLosesTheLead(t *testing.T) {
	url := postgres.Start(t).Database()
	hasty := *dialect
	hasty.Timeouts.LeaderSession = `SET idle_session_timeout = 200`
	hanging, other := openDB(t, url, &hasty), openDB(t, url, dialect)
	led, err := hanging.Lead(t.Context(), "work", func(ctx context.Context) error {
		took := false
		for end := time.Now().Add(2500 * time.Millisecond); !took && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			var err error
			if took, err = other.Lead(ctx, "work", func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		}
		if !took {
			t.Error("no other one leads")
		}
		select {
		case <-ctx.Done():
		case <-time.After(database.LosingAfter):
		}
		return ctx.Err()
	})
	if !led || err == nil || !strings.Contains(err.Error(), "the lead is lost") {
		t.Errorf("it led: %t, %v", led, err)
	}
	err = other.Snapshot(t.Context(), func(ctx context.Context, tx *database.Tx) error {
		_, err := tx.Exec(ctx, dialect.Timeouts.LeaderSession)
		if after := setting(t, tx, "idle_session_timeout"); after != database.LosingAfter.Milliseconds() {
			t.Errorf("a leader that hangs loses the lead after %d ms", after)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestInstallationsInSchemasOfOneDatabaseHaveLocksOfTheirOwn: PostgreSQL has one set of advisory locks for all schemas.
func TestInstallationsInSchemasOfOneDatabaseHaveLocksOfTheirOwn(t *testing.T) {
	server := postgres.Start(t)
	address := server.Database()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(parsed.Path, "/")
	server.Exec(name, `CREATE SCHEMA one`)
	server.Exec(name, `CREATE SCHEMA two`)
	one, two, again := open(t, address+"&options=-c%20search_path%3Done"), open(t, address+"&search_path=two"), open(t, address+"&search_path=two")
	defer one.Close()
	defer two.Close()
	defer again.Close()
	nothing := func(context.Context) error { return nil }
	led, err := one.Lead(t.Context(), "sweep", func(ctx context.Context) error {
		led, err := two.Lead(ctx, "sweep", func(ctx context.Context) error {
			if led, err := again.Lead(ctx, "sweep", nothing); led || err != nil {
				t.Errorf("two lead in one schema: %v", err)
			}
			return nil
		})
		if !led {
			t.Error("the other installation has no leader")
		}
		return err
	})
	if !led || err != nil {
		t.Errorf("%t, %v", led, err)
	}
}

// TestAnAuthorityThatIsReplacedCountsForNewConnections has a server that speaks TLS and then ends.
func TestAnAuthorityThatIsReplacedCountsForNewConnections(t *testing.T) {
	issued := httptest.NewUnstartedServer(nil)
	issued.StartTLS()
	defer issued.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	shaken := make(chan error, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			shaken <- shake(conn, issued.TLS.Certificates[0])
		}
	}()
	authority := filepath.Join(t.TempDir(), "ca.crt")
	trust := func(certificate *x509.Certificate) {
		t.Helper()
		if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust(anotherAuthority(t))
	pool, err := openPool("postgres://kubeop@" + listener.Addr().String() + "/kubeop?sslrootcert=" + url.QueryEscape(authority))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := errors.Join(pool.PingContext(t.Context()), <-shaken); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("with another authority: %v", err)
	}
	trust(issued.Certificate())
	_ = pool.PingContext(t.Context()) // It is no PostgreSQL.
	if err := <-shaken; err != nil {
		t.Errorf("with the one that replaced it: %v", err)
	}
}

// shake answers the SSLRequest of PostgreSQL's protocol, and makes the handshake of TLS.
func shake(conn net.Conn, certificate tls.Certificate) error {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("S")); err != nil {
		return err
	}
	return tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}).Handshake()
}

// anotherAuthority returns the certificate of one that issued nothing.
func anotherAuthority(t *testing.T) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
