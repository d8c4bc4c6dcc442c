package inputs

import (
	"sync"

	"github.com/kubeop/kubeop/controllers/app/references"
	"github.com/kubeop/kubeop/delivery/lru"
)

const (
	// maxContents is the size of the cache of ConfigMaps and Secrets, in bytes.
	maxContents = 8 << 20
	// contentCost is the approximate size of an entry without its data, in bytes, so that empty objects count, too.
	contentCost = 512
)

// contents caches the data of ConfigMaps and Secrets, one version of each, so that an object is not read again while the watch shows the
// same version.
type contents struct {
	mu   sync.Mutex
	held *lru.Cache[references.Object, content]
}

type content struct {
	version string
	data    map[string][]byte
}

func (c *contents) get(ref references.Object, version string) (map[string][]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return nil, false
	}
	known, ok := c.held.Get(ref)
	return known.data, ok && known.version == version
}

func (c *contents) put(ref references.Object, version string, data map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = lru.New[references.Object](maxContents, content.size)
	}
	c.held.Add(ref, content{version: version, data: data})
}

// size returns the approximate size of the content, in bytes.
func (c content) size() int64 {
	size := int64(contentCost)
	for k, v := range c.data {
		size += int64(len(k) + len(v))
	}
	return size
}
