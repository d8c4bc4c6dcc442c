package git

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/lru"
)

const (
	// maxObjectCache is how much of the objects a store keeps in memory while it is read from, in bytes. Small, because there is one per
	// repository, and because what is read is kept by those who read it.
	maxObjectCache = 2 * limit.MiB
	// objectCost is about what an object takes beside its content, in bytes.
	objectCost = 200
)

// objectCache holds the objects that were read last. That of go-git takes memory for a thousand objects as soon as it has one, which with
// hundreds of stores was a tenth of the operator's. Not safe for concurrent use.
type objectCache struct {
	*lru.Cache[plumbing.Hash, plumbing.EncodedObject]
}

var _ cache.Object = objectCache{}

func newObjectCache() objectCache {
	return objectCache{lru.New[plumbing.Hash](maxObjectCache, func(o plumbing.EncodedObject) int64 { return o.Size() + objectCost })}
}

// Put implements cache.Object.
func (c objectCache) Put(o plumbing.EncodedObject) { c.Add(o.Hash(), o) }
