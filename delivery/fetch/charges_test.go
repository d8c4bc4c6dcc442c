package fetch

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestSmallFilesCountAsWholeBlocks fetches charts of a few bytes.
func TestSmallFilesCountAsWholeBlocks(t *testing.T) {
	server := sources.ServeHelm(t)
	var versions []string
	for n := range 30 {
		versions = append(versions, fmt.Sprintf("1.0.%d", n))
	}
	server.Publish(t, versions...)
	for name, test := range map[string]struct {
		limit int64
		files int
		says  string
	}{
		"bytes": {limit: 20 * 2 * block, files: 100, says: "the limit is 160 KiB"},
		"files": {limit: limit.GiB, files: 20, says: "as many files on disk as the limit of 20"},
	} {
		t.Run(name, func(t *testing.T) {
			stores, _ := storesOf(t.TempDir(), test.limit)
			stores.disk.Limits.Files = test.files
			fetch := func(tenant string, n int) error {
				_, err := stores.Charts.Fetch(t.Context(), chart.Source{Repository: server.URL + "/stable", Name: "web", Version: versions[n], Tenant: tenant})
				return err
			}
			for n := range 18 { // The index is a file, too.
				sources.WantError(t, fetch("acme", n), nil, "")
			}
			for n := 18; n < 20; n++ {
				_ = fetch("acme", n)
			}
			sources.WantError(t, fetch("acme", 20), failure.ErrTooLarge, test.says)
			sources.WantError(t, fetch("other", 21), nil, "")
		})
	}
}

// block is what the smallest file takes, and its name as much again.
const block = 4 * limit.KiB

// keep puts a file that takes that many KiB into the store of charts.
func (s *Stores) keep(t *testing.T, tenant string, size int) string {
	t.Helper()
	folder := filepath.Join(s.Charts.Dir, tenant)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, fmt.Sprint(size)+".tgz")
	if err := os.WriteFile(path, make([]byte, size*limit.KiB-block), 0o600); err != nil {
		t.Fatal(err)
	}
	s.disk.Claim(tenant, path)
	return path
}

// TestDownloadsBelowTheLimitScanNoFiles has a download below the limits look at no file.
func TestDownloadsBelowTheLimitScanNoFiles(t *testing.T) {
	stores, later := storesOf(t.TempDir(), 100*limit.KiB)
	gone := stores.keep(t, "acme", 90)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	sources.WantError(t, stores.disk.Check(t.Context(), "acme"), nil, "")
	if stores.disk.Sum() != 90*limit.KiB {
		t.Errorf("%d bytes count: it was looked, want %d", stores.disk.Sum(), 90*limit.KiB)
	}
	stores.keep(t, "acme", 91)
	sources.WantError(t, stores.disk.Check(t.Context(), "acme"), nil, "") // Over the limit, it is looked.
	gone = stores.keep(t, "acme", 92)
	sources.WantError(t, stores.disk.Check(t.Context(), "acme"), failure.ErrTooLarge, "100 KiB")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	sources.WantError(t, stores.disk.Check(t.Context(), "acme"), failure.ErrTooLarge, "100 KiB") // It is not looked again at once.
	later(time.Minute)
	sources.WantError(t, stores.disk.Check(t.Context(), "acme"), nil, "")
}

func TestAllTenantsTogetherAreBounded(t *testing.T) {
	stores, later := storesOf(t.TempDir(), limit.GiB)
	stores.disk.Limits.Total = 600 * limit.KiB
	check := func(tenant string) error { return stores.disk.Check(t.Context(), tenant) }
	const refused = "all tenants take more disk together than the limit of 600 KiB"
	stores.keep(t, "big", 400)
	stores.keep(t, "small", 180)
	sources.WantError(t, check("big"), nil, "")
	stores.keep(t, "other", 30)
	sources.WantError(t, check("big"), disk.Err, refused)
	sources.WantError(t, check("small"), nil, "")
	sources.WantError(t, check(budget.OfRepository("big")), nil, "")
	stores.keep(t, "other", 100)
	sources.WantError(t, check("small"), disk.Err, refused)

	later(disk.IdleFor + time.Minute)
	sources.WantError(t, check("small"), nil, "")
	if left := stores.disk.Files(); len(left) != 3 || stores.disk.Used("big") > 0 {
		t.Errorf("%v is left, want all but what the tenant with most did not use", left)
	}
}

// TestPacksCountForTheTenantThatFetchedThem has a tenant use a pack that another tenant fetched, before and after a restart.
func TestPacksCountForTheTenantThatFetchedThem(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", sources.Noise(1, 60*limit.KiB))
	repo.Push("first")
	src := git.Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()}
	dir := t.TempDir()
	stores, _ := storesOf(dir, limit.GiB)
	fetch := func(tenant string) {
		t.Helper()
		src.Tenant = tenant
		if _, err := stores.Git.Fetch(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	want := func(tenant string, atLeast, below int64) {
		t.Helper()
		if bytes := stores.disk.Used(tenant); bytes < atLeast || bytes >= below {
			t.Errorf("%d bytes count for %q, want %d to %d", bytes, tenant, atLeast, below)
		}
	}
	fetch("acme")
	fetch("other")
	want("acme", 60*limit.KiB, 90*limit.KiB)
	want("other", 0, 1)

	stores, _ = storesOf(dir, limit.GiB)
	fetch("other")
	want("other", 0, 1)
	want("", 60*limit.KiB, 120*limit.KiB)
	repo.Write("b", sources.Noise(2, 10*limit.KiB))
	repo.Push("second")
	fetch("other")
	want("other", 10*limit.KiB, 50*limit.KiB)
}

// TestTheLimitsOfEachTenantHoldInAllStores: the size on disk counts for every source, the inflated size for packs of Git.
func TestTheLimitsOfEachTenantHoldInAllStores(t *testing.T) {
	helm := sources.ServeHelm(t)
	helm.Publish(t, "1.0.0")
	repo := sources.NewGitRepo(t)
	repo.Write("large.yaml", sources.Noise(1, 64*limit.KiB))
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	bounds := map[string]Bounds{
		"wide":          {Kept: limit.MiB, Inflated: limit.MiB},
		"little space":  {Kept: 50, Inflated: limit.MiB},
		"packs too big": {Kept: limit.MiB, Inflated: limit.KiB},
	}
	for tenant, says := range map[string]struct{ chart, git string }{
		"wide":          {},
		"little space":  {"operator's disk together, and the limit is 50 bytes", "operator's disk together, and the limit is 50 bytes"},
		"packs too big": {"", "together, is larger than the limit of 1 KiB"},
	} {
		t.Run(tenant, func(t *testing.T) {
			stores := NewStores(t.TempDir(), loopback, time.Now)
			stores.Limit(func(name string) Bounds { return bounds[name] })
			_, err := stores.Charts.Fetch(t.Context(), chart.Source{Repository: helm.URL + "/stable", Name: "web", Tenant: tenant})
			sources.WantError(t, err, kindOf(says.chart), says.chart)
			_, err = stores.Git.Fetch(t.Context(), git.Source{URL: server.RepoURL(), Tenant: tenant})
			sources.WantError(t, err, kindOf(says.git), says.git)
			if used := stores.Used(tenant); (used > 0) != (says.git == "" || says.chart == "") || used > bounds[tenant].Kept {
				t.Errorf("%d bytes count", used)
			}
		})
	}
}

func kindOf(says string) error {
	if says == "" {
		return nil
	}
	return failure.ErrTooLarge
}
