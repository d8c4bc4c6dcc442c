package chart

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
)

// loopback is the Network of tests; their servers run on this machine.
var loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// TestIndexesRememberedAreBounded checks also that the most recently used one is kept.
func TestIndexesRememberedAreBounded(t *testing.T) {
	s := NewStore(t.TempDir(), loopback)
	var last *helmRepository
	for i := range rememberedIndexes + 100 {
		src := Source{Repository: fmt.Sprintf("https://charts.example.com/%d", i), Name: "web"}
		base, err := src.check()
		if err != nil {
			t.Fatal(err)
		}
		first := request{Source: Source{Repository: "https://charts.example.com/first", Name: "web"}, base: base, folder: "first", arrived: s.arrivals.Add(1)}
		if _, err := s.helmRepository(first); err != nil { // It is used again and again.
			t.Fatal(err)
		}
		if last, err = s.helmRepository(request{Source: src, base: base, folder: s.source(src), arrived: s.arrivals.Add(1)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.indexes); n != rememberedIndexes {
		t.Errorf("%d are remembered, want %d", n, rememberedIndexes)
	}
	if s.indexes["first"] == nil || s.indexes[filepath.Dir(last.file)] != last {
		t.Error("one that was asked for a moment ago is forgotten")
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
	if len(store.indexes)+store.Used.Len() > 0 {
		t.Errorf("%v and %d uses are left", store.indexes, store.Used.Len())
	}
}
