package chart

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// loopback is the Network of tests; their servers run on this machine.
var loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// TestIndexesRememberedAreBounded checks also that the most recently used one is kept.
func TestIndexesRememberedAreBounded(t *testing.T) {
	s := NewStore(t.TempDir(), loopback)
	var last, always *helmRepository
	for i := range rememberedIndexes + 100 {
		src := Source{Repository: fmt.Sprintf("https://charts.example.com/%d", i), Name: "web"}
		base, err := src.check()
		if err != nil {
			t.Fatal(err)
		}
		first := request{Source: Source{Repository: "https://charts.example.com/first", Name: "web"}, base: base, folder: "first", arrived: s.arrivals.Add(1)}
		again, err := s.helmRepository(first) // It is used again and again.
		if err != nil {
			t.Fatal(err)
		}
		if always == nil {
			always = again
		}
		if again != always {
			t.Fatalf("it is forgotten after %d others", i)
		}
		if last, err = s.helmRepository(request{Source: src, base: base, folder: s.source(src), arrived: s.arrivals.Add(1)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.indexes.Len(); n != rememberedIndexes {
		t.Errorf("%d are remembered, want %d", n, rememberedIndexes)
	}
	first, _ := s.indexes.Get("first")
	if newest, _ := s.indexes.Get(filepath.Dir(last.file)); first == nil || newest != last {
		t.Error("one that was asked for a moment ago is forgotten")
	}
}

// closing counts how often the idle connections of a client are closed.
type closing struct {
	http.RoundTripper
	times int
}

func (c *closing) CloseIdleConnections() { c.times++ }

// TestARepositoryInUseIsNotTidiedAway; the connections of one that is are closed.
func TestARepositoryInUseIsNotTidiedAway(t *testing.T) {
	s := NewStore(t.TempDir(), loopback)
	src := Source{Repository: "https://charts.example.com/stable", Name: "web"}
	base, err := src.check()
	if err != nil {
		t.Fatal(err)
	}
	use := func() *helmRepository {
		known, err := s.helmRepository(request{Source: src, base: base, folder: s.source(src), arrived: s.arrivals.Add(1)})
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	first, connections := use(), &closing{}
	first.http = &http.Client{Transport: connections}
	for range 3 {
		s.Tidy()
		if use() != first {
			t.Fatal("it is forgotten although it is used")
		}
	}
	s.Tidy()
	s.Tidy()
	if s.indexes.Len() > 0 || connections.times != 1 {
		t.Errorf("nobody uses it: %d are kept, and its connections were closed %d times", s.indexes.Len(), connections.times)
	}
}

// sweepStore sweeps one store at that time.
func sweepStore(ctx context.Context, store disk.Store, now time.Time) error {
	return disk.New(func() time.Time { return now }, store).Sweep(ctx)
}

// wantTransient expects an error after which another try makes sense.
func wantTransient(t *testing.T, err error) {
	t.Helper()
	if _, final := verdict.Of(err); err == nil || final {
		t.Errorf("got %v, want a transient error", err)
	}
}

// TestRepositoriesThatFailAreForgotten requests repositories that never existed.
func TestRepositoriesThatFailAreForgotten(t *testing.T) {
	server := httptest.NewServer(nil)
	t.Cleanup(server.Close)
	store, now := NewStore(t.TempDir(), loopback), time.Now()
	store.Disk = disk.New(func() time.Time { return now }, store)
	for n := range 3 {
		if _, err := store.Fetch(t.Context(), Source{Repository: fmt.Sprintf("%s/%d", server.URL, n), Name: "web", Tenant: "acme"}); err == nil {
			t.Error("a chart was found")
		}
	}
	for range 3 {
		now = now.Add(2 * disk.IdleFor)
		if err := store.Disk.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if store.indexes.Len()+store.Used.Len() > 0 {
		t.Errorf("%d repositories and %d uses are left", store.indexes.Len(), store.Used.Len())
	}
}

// TestAnIndexCountsForItsTenantWhileItIsDownloaded: an index that exceeds the tenant's part of the disk is not kept.
func TestAnIndexCountsForItsTenantWhileItIsDownloaded(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	store := NewStore(t.TempDir(), loopback)
	store.Disk = disk.New(time.Now, store)
	store.Disk.Limits.Bytes = 50
	src := Source{Repository: server.URL + "/stable", Name: "web", Tenant: "acme"}
	_, err := store.Fetch(t.Context(), src)
	sources.WantError(t, err, failure.ErrTooLarge, "the sources of tenant acme take ")
	if kept, _ := filepath.Glob(filepath.Join(store.Dir, "*", "*")); len(kept) != 0 {
		t.Errorf("it was kept: %v", kept)
	}
	if used := store.Disk.Used("acme"); used != 0 {
		t.Errorf("%d bytes count after the download", used)
	}
	store.Disk.Limits.Bytes = limit.MiB
	if _, err := store.Fetch(t.Context(), src); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	if _, err := store.Fetch(t.Context(), Source{Repository: src.Repository, Name: "gone", Tenant: "rival"}); err == nil || store.Disk.Used("rival") == 0 {
		t.Errorf("only the index is fetched for a tenant, and %d bytes count; %v", store.Disk.Used("rival"), err)
	}
}

// TestARepositoryWithoutClientIsNotRemembered: otherwise the next fetch would use a client that does not exist.
func TestARepositoryWithoutClientIsNotRemembered(t *testing.T) {
	s := NewStore(t.TempDir(), loopback)
	base, err := url.Parse("https://charts.example.com/stable")
	if err != nil {
		t.Fatal(err)
	}
	for says, auth := range map[string]transport.Auth{
		"ca.crt of the Secret holds no certificate in PEM": {CA: []byte("no certificate")},
		".dockerconfigjson": {DockerConfig: []byte("no JSON")},
	} {
		known, err := s.helmRepository(request{Source: Source{Name: "web", Auth: auth}, base: base, folder: "a"})
		sources.WantError(t, err, failure.ErrInvalid, says)
		_, err = s.Fetch(t.Context(), Source{Repository: base.String(), Name: "web", Auth: auth})
		sources.WantError(t, err, failure.ErrInvalid, says)
		if known != nil || s.indexes.Len() != 0 {
			t.Errorf("got %+v, and %d are remembered", known, s.indexes.Len())
		}
	}
}
