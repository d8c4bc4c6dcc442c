package inputs

import (
	"sync"

	"github.com/kubeop/kubeop/controllers/app/references"
	"github.com/kubeop/kubeop/delivery/lru"
)

const (
	// maxContents bounds, in bytes, how much of ConfigMaps and Secrets is remembered.
	maxContents = 8 << 20
	// contentCost is about what an object takes beside what it holds, so that empty ones count.
	contentCost = 512
)

// contents remember what ConfigMaps and Secrets hold, each in the one version that was read, so that values are not read again while the watch
// shows that version.
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

// size is about how many bytes the content takes.
func (c content) size() int64 {
	size := int64(contentCost)
	for k, v := range c.data {
		size += int64(len(k) + len(v))
	}
	return size
}
