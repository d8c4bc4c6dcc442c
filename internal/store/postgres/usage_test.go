package postgres

import (
	"context"
	"fmt"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
	"github.com/kubeop/kubeop/internal/testenv/postgres"
)

// counter counts statements.
type counter struct{ n atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestAMinuteTakesFewStatements: each is a round trip, all of them are one transaction, and that has 20 s.
func TestAMinuteTakesFewStatements(t *testing.T) {
	config, err := Parse(postgres.Start(t).Database())
	if err != nil {
		t.Fatal(err)
	}
	statements := &counter{}
	config.Tracer = statements
	s, err := sqlstore.Open(t.Context(), database.New(stdlib.OpenDB(*config), dialect))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	used := map[store.Place]store.Amounts{}
	for n := range 5000 {
		used[store.Place{Tenant: "acme", Project: "shop", App: fmt.Sprint("app", n), Cluster: "local"}] = store.Amounts{meter.Pods: meter.Of(big.NewInt(60), 0), meter.CPURequested: meter.Of(big.NewInt(15), 0)}
	}
	began := time.Date(2026, 11, 28, 12, 58, 0, 0, time.UTC)
	for minute, most := range []int64{70, 40, 70} { // The first one makes the places, and the third one begins an hour.
		before, at := statements.n.Load(), time.Now()
		if err := s.AddMinute(t.Context(), store.Minute{Cluster: "local", Begin: began.Add(time.Duration(minute) * time.Minute), Groups: []meter.Group{meter.OfPods}, Used: used}); err != nil {
			t.Fatal(err)
		}
		n := statements.n.Load() - before
		t.Logf("%d statements, in %s", n, time.Since(at))
		if n > most {
			t.Errorf("the minute %d takes %d statements", minute, n)
		}
	}
}
