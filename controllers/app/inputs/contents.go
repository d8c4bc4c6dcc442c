package inputs

import (
	"sync"

	"github.com/kubeop/kubeop/controllers/app/references"
)

// maxContents bounds, in bytes, how much of ConfigMaps and Secrets is remembered.
const maxContents = 8 << 20

// contentCost is about what an object takes beside what it holds, so that empty ones count.
const contentCost = 512

// contents remembers what ConfigMaps and Secrets hold, each in the one version that was read, so that values are not read again while the
// watch shows that version.
type contents struct {
	mu   sync.Mutex
	held map[references.Object]content
	size int
}

type content struct {
	version string
	data    map[string][]byte
}

func (c *contents) get(ref references.Object, version string) (map[string][]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.held[ref]
	return known.data, ok && known.version == version
}

// put remembers an object. When there is too much, everything else is forgotten: it is read again when it is needed.
func (c *contents) put(ref references.Object, version string, data map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, known := c.held[ref]; known {
		c.size -= sizeOf(before.data)
	}
	if c.size += sizeOf(data); c.held == nil || c.size > maxContents {
		c.held, c.size = map[references.Object]content{}, sizeOf(data)
	}
	c.held[ref] = content{version: version, data: data}
}

func sizeOf(data map[string][]byte) int {
	size := contentCost
	for k, v := range data {
		size += len(k) + len(v)
	}
	return size
}
