// Package fetch combines the stores of sources, which share one disk: commits of Git repositories, charts and artifacts. It knows no
// controller and no condition.
package fetch

import (
	"context"
	"path/filepath"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// Stores are the stores on the operator's disk. The sources of each tenant may take 2 GiB (see Limit) and 20,000 files. If they take more,
// files that were not used for an hour are removed; if that is not enough, a fetch for the tenant that has to download returns ErrTooLarge.
// All tenants together may take 3 GiB. If they take more, unused files are removed too, and a fetch for a tenant with more than an even
// share fails until there is space.
type Stores struct {
	Git       *git.Store
	Charts    *chart.Store
	Artifacts *artifact.Store

	disk *disk.Disk
}

// NewStores returns stores in folders of dir. hosts are for artifact.NewStore; now returns the time.
func NewStores(dir string, network *transport.Network, now func() time.Time, hosts ...string) *Stores {
	s := &Stores{
		Git:       git.NewStore(filepath.Join(dir, "git"), network),
		Charts:    chart.NewStore(filepath.Join(dir, "charts"), network),
		Artifacts: artifact.NewStore(filepath.Join(dir, "artifacts"), network, hosts...),
	}
	s.disk = disk.New(now, s.Git, s.Charts, s.Artifacts)
	s.disk.Find(dir)
	s.Git.Disk, s.Charts.Disk, s.Artifacts.Disk = s.disk, s.disk, s.disk
	return s
}

// Bounds are the limits of one tenant, in bytes.
type Bounds struct {
	// Kept is the size of the tenant's sources on disk. Inflated is the inflated size of the objects of one Git fetch.
	Kept, Inflated int64
}

// Limit sets the limits of what is fetched for each tenant. It calls bounds, which must not block, with the name of a tenant, or with the name
// of a Repository for the Repository's own commits. Call Limit before the first fetch.
func (s *Stores) Limit(bounds func(name string) Bounds) {
	s.disk.LimitOf = func(name string) int64 { return bounds(name).Kept }
	s.Git.LimitPacks(func(name string) int64 { return bounds(name).Inflated })
}

// Unpack sets the Reader of the packs of Git fetches. Call it before the first fetch.
func (s *Stores) Unpack(as pack.Reader) { s.Git.Unpack(as) }

// Used returns the bytes on disk that count for a tenant: those of its apps' sources.
func (s *Stores) Used(tenant string) int64 {
	return s.disk.Used(tenant)
}

// Sweep removes what was not used for 7 days: commits, charts, artifacts and indexes of repositories. Call it hourly, because the time of a
// use is stored at the next sweep. A file that is fetched meanwhile stays, or is downloaded again.
func (s *Stores) Sweep(ctx context.Context) error { return s.disk.Sweep(ctx) }
