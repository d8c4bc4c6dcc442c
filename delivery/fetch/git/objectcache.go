package git

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"k8s.io/utils/lru"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// maxObjectCache is how much of the objects a store keeps in memory while it is read from, in bytes. Small, because there is one per
// repository, and because what is read is kept by those who read it.
const maxObjectCache = 2 * limit.MiB

// maxCachedObjects is how many they are at most.
const maxCachedObjects = 10_000

// objectCache holds the objects that were read last. That of go-git takes memory for a thousand objects as soon as it has one, which with
// hundreds of stores was a tenth of the operator's. Not safe for concurrent use.
type objectCache struct {
	objects *lru.Cache
	bytes   int64
}

var _ cache.Object = (*objectCache)(nil)

func newObjectCache() *objectCache {
	c := &objectCache{}
	c.objects = lru.NewWithEvictionFunc(maxCachedObjects, func(_ lru.Key, evicted any) {
		c.bytes -= evicted.(plumbing.EncodedObject).Size()
	})
	return c
}

// Put implements cache.Object.
func (c *objectCache) Put(o plumbing.EncodedObject) {
	if o.Size() > maxObjectCache {
		return
	}
	if _, there := c.objects.Get(o.Hash()); there {
		return
	}
	c.objects.Add(o.Hash(), o)
	for c.bytes += o.Size(); c.bytes > maxObjectCache; {
		c.objects.RemoveOldest()
	}
}

// Get implements cache.Object.
func (c *objectCache) Get(hash plumbing.Hash) (plumbing.EncodedObject, bool) {
	found, ok := c.objects.Get(hash)
	if !ok {
		return nil, false
	}
	return found.(plumbing.EncodedObject), true
}

// Clear implements cache.Object.
func (c *objectCache) Clear() { c.objects.Clear() }
