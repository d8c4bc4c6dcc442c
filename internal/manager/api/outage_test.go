package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/store/postgres"
	testpostgres "github.com/kubeop/kubeop/internal/testenv/postgres"
)

// TestReadsGoOnWithoutTheDatabase stops a real PostgreSQL while callers read, and starts it again: the cluster is read on, and what needs the store says 503 and why.
func TestReadsGoOnWithoutTheDatabase(t *testing.T) {
	server := testpostgres.Start(t)
	opened, err := postgres.Open(t.Context(), server.Database())
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	m := newManager(t)
	m.store = opened
	m.now = time.Now()
	checks := readiness.New(logr.Discard(), time.Now)
	checks.Add("store", opened.Ping)
	m.Handler, err = New(Options{
		Log: logr.Discard(), Live: &live.Operations{Index: index.New(), Synced: func(context.Context) error { return nil }}, Registry: prometheus.NewRegistry(), Checks: checks, Store: opened, Signing: m.signing,
		Issuers: m.issuers, Owners: m.owners, RequestsPerSecond: 100_000, Burst: 100_000, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	secret := m.holder("admin", "admin")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reads, failed atomic.Int32
	var readers sync.WaitGroup
	read := func() {
		reads.Add(1)
		if answer := m.as(secret, "GET", "/v1/tenants", ""); answer.Code != http.StatusOK {
			failed.Add(1)
			t.Errorf("a read is answered by %d %s", answer.Code, answer.Body)
		}
	}
	read()
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil && failed.Load() == 0 {
				read()
			}
		})
	}
	const remembered = 1100 * time.Millisecond // An outcome of the checks is returned again for a second.
	for range 2 {
		server.Stop()
		before := reads.Load()
		for path, answer := range map[string]int{"/v1/tokens": http.StatusServiceUnavailable, "/v1/audit": http.StatusServiceUnavailable, "/version": http.StatusOK} {
			if got := m.as(secret, "GET", path, ""); got.Code != answer || answer != http.StatusOK && (!strings.Contains(got.Body.String(), "The store of the manager does not answer.") || got.Header().Get("Content-Type") != "application/problem+json") {
				t.Errorf("%s without the database: %d %s", path, got.Code, got.Body)
			}
		}
		time.Sleep(remembered)
		if missing := checks.Missing(t.Context()); len(missing) != 1 || missing[0] != "store" {
			t.Errorf("missing are %q", missing)
		}
		for end := time.Now().Add(10 * time.Second); reads.Load() < before+100 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		if reads.Load() < before+100 {
			t.Errorf("only %d reads were answered without the database", reads.Load()-before)
		}
		server.Start()
		if got := m.as(secret, "GET", "/v1/tokens", ""); got.Code != http.StatusOK {
			t.Errorf("with the database again: %d %s", got.Code, got.Body)
		}
		time.Sleep(remembered)
		if missing := checks.Missing(t.Context()); len(missing) > 0 {
			t.Errorf("with the database again %q are missing", missing)
		}
	}
	stop()
	readers.Wait()
}
