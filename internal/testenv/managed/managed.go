// Package managed serves the management API to tests: the real handler at an address, with a store of its own, and a cluster that the test writes.
package managed

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/internal/manager/api"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/server"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

// Manager is a manager at an address.
type Manager struct {
	http.Handler
	URL string
	// Index has the answers about the cluster. Unsynced is why the cluster was not read yet.
	Index    *index.Index
	Unsynced error

	t     *testing.T
	store store.Store
	stop  func()
}

// Start starts a manager that takes so many requests at once of each caller, and then one a minute. It runs until the test ends.
func Start(t *testing.T, burst int) *Manager {
	t.Helper()
	return Of(t, index.New(), burst)
}

// Of is Start for a cluster that is read already.
func Of(t *testing.T, cluster *index.Index, burst int) *Manager {
	t.Helper()
	s := operated.Store(t)
	m := &Manager{Index: cluster, t: t, store: s}
	var err error
	m.Handler, err = api.New(api.Options{
		Log: logr.Discard(), Registry: prometheus.NewRegistry(), Checks: readiness.New(logr.Discard(), time.Now), Store: s, RequestsPerSecond: 1.0 / 60, Burst: burst, Now: time.Now,
		Live: &live.Operations{Index: m.Index, Synced: func(context.Context) error { return m.Unsynced }},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.serve()
	return m
}

func (m *Manager) serve() {
	m.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	m.URL = "http://" + listener.Addr().String()
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- (&server.Server{Name: "test", Listener: listener, Handler: m, Grace: time.Minute, Log: logr.Discard()}).Serve(running)
	}()
	stopped := false
	m.stop = func() {
		if stopped {
			return
		}
		stopped = true
		stop()
		if err := <-ended; err != nil {
			m.t.Error(err)
		}
	}
	m.t.Cleanup(m.stop)
}

// Stop stops the manager, which ends all streams.
func (m *Manager) Stop() { m.stop() }

// Token stores a token with scopes of one tenant, valid for an hour, and returns it with its id.
func (m *Manager) Token(scopes ...string) (secret, id string) {
	m.t.Helper()
	id = uuid.NewString()
	return operated.Token(m.t, m.store, time.Now(), id, scopes...), id
}

// Revoke revokes a token by its id.
func (m *Manager) Revoke(id string) {
	m.t.Helper()
	if err := m.store.RevokeToken(context.Background(), "", id, store.Event{At: time.Now(), Action: "test"}); err != nil {
		m.t.Fatal(err)
	}
}

// Apply records objects of the cluster as they are now.
func (m *Manager) Apply(objects ...client.Object) {
	m.t.Helper()
	for _, o := range objects {
		if err := live.Apply(m.Index, o); err != nil {
			m.t.Fatal(err)
		}
	}
}
