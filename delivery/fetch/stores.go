package fetch

import (
	"context"
	"path/filepath"
	"time"
)

// Stores are what the operator keeps on one disk, of which the sources of each tenant may take 2 GiB and 20,000 files. For more, what
// nobody used for an hour goes, and where that is not enough a fetch for the tenant that has to download is ErrTooLarge. All together
// may take 3 GiB; for more, what nobody used goes, too, and a fetch for a tenant with more than an even share fails until there is room.
type Stores struct {
	Git       *GitStore
	Charts    *ChartStore
	Artifacts *ArtifactStore

	disk *disk
}

// NewStores keeps the stores in folders of dir. hosts are those of NewArtifactStore; now tells the time.
func NewStores(dir string, network *Network, now func() time.Time, hosts ...string) *Stores {
	s := &Stores{
		Git:       NewGitStore(filepath.Join(dir, "git"), network),
		Charts:    NewChartStore(filepath.Join(dir, "charts"), network),
		Artifacts: NewArtifactStore(filepath.Join(dir, "artifacts"), network, hosts...),
	}
	s.disk = newDisk(now, s.Git, s.Charts, s.Artifacts)
	s.disk.find(dir)
	s.Git.disk, s.Charts.disk, s.Artifacts.disk = s.disk, s.disk, s.disk
	return s
}

// Sweep removes what was not used for 7 days: commits, charts, artifacts and indexes of repositories. Call it hourly: a use counts
// from the sweep after it. What one fetches meanwhile stays, or is downloaded again.
func (s *Stores) Sweep(ctx context.Context) error { return s.disk.sweep(ctx) }
