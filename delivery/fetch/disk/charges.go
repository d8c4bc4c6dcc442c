package disk

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

const (
	// blockSize is the disk usage of the smallest file, in bytes. Each file counts that much again for its name and its inode, so that many
	// small files are not free.
	blockSize = 4 * limit.KiB
	// unowned is the tenant of files that an earlier process left and that were not used since.
	unowned = ""
)

// charges counts what is kept on disk, and for whom. Callers report what they add; what was deleted is noticed by counting again.
type charges struct {
	mu sync.Mutex
	// owner is the tenant that a file counts for.
	owner  map[string]string
	shares map[string]*share
	// sum is the sum of all shares, in bytes.
	sum int64
}

// share is what counts for one tenant.
type share struct {
	files map[string]int64
	// kept are the bytes of the files, coming those that are being downloaded.
	kept, coming int64
}

// count counts a file for a tenant, and no longer for the one before.
func (c *charges) count(tenant, path string) {
	size, known := charge(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known {
		c.put(tenant, path, size)
	}
}

// recount counts a file again, and reports whether it exists.
func (c *charges) recount(path string) bool {
	size, known := charge(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if tenant, counts := c.owner[path]; counts && known {
		c.put(tenant, path, size)
	}
	return size > 0
}

// charge returns the disk usage of a file, 0 when it does not exist.
func charge(path string) (size int64, known bool) {
	about, err := os.Stat(path)
	if err != nil {
		return 0, errors.Is(err, fs.ErrNotExist)
	}
	return max(about.Size(), blockSize) + blockSize, true
}

func (c *charges) put(tenant, path string, size int64) {
	if before, counts := c.owner[path]; counts {
		share := c.shares[before]
		share.kept -= share.files[path]
		c.sum -= share.files[path]
		delete(share.files, path)
		delete(c.owner, path)
		c.drop(before)
	}
	if size == 0 {
		return
	}
	share := c.of(tenant)
	share.files[path] = size
	share.kept += size
	c.sum += size
	c.owner[path] = tenant
}

// arrive counts bytes that are being downloaded.
func (c *charges) arrive(tenant string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(tenant).coming += n
	c.sum += n
	c.drop(tenant)
}

func (c *charges) of(tenant string) *share {
	if c.shares[tenant] == nil {
		c.shares[tenant] = &share{files: map[string]int64{}}
	}
	return c.shares[tenant]
}

// drop removes a tenant with nothing left to count.
func (c *charges) drop(tenant string) {
	if share := c.shares[tenant]; len(share.files) == 0 && share.coming == 0 {
		delete(c.shares, tenant)
	}
}

// take returns what counts for a tenant.
func (c *charges) take(tenant string) (files int, bytes int64) {
	if share := c.shares[tenant]; share != nil {
		return len(share.files), share.kept + share.coming
	}
	return 0, 0
}

// most returns the tenant with the largest share.
func (c *charges) most() string {
	most := unowned
	for tenant, share := range c.shares {
		if _, bytes := c.take(most); tenant != unowned && (most == unowned || share.kept+share.coming > bytes) {
			most = tenant
		}
	}
	return most
}

// filesOf returns the files that count for a tenant.
func (c *charges) filesOf(tenant string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if share := c.shares[tenant]; share != nil {
		return slices.Collect(maps.Keys(share.files))
	}
	return nil
}

// Files returns the files that count.
func (c *charges) Files() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.owner))
}

// owned returns the files that count for a tenant, and the folders above them.
func (c *charges) owned() map[string]bool {
	c.mu.Lock()
	owner := maps.Clone(c.owner)
	c.mu.Unlock()
	owned := map[string]bool{}
	for path, tenant := range owner {
		for ; tenant != unowned && !owned[path]; path = filepath.Dir(path) {
			owned[path] = true
		}
	}
	return owned
}
