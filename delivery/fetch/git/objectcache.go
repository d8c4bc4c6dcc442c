package git

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/lru"
)

const (
	// maxObjectCache bounds the objects that a store keeps in memory while it is read, in bytes. It is small because there is one per
	// repository, and because readers keep what they read.
	maxObjectCache = 2 * limit.MiB
	// objectCost is roughly the memory of an object beside its content, in bytes.
	objectCost = 200
)

// objectCache holds the objects that were read last. go-git's cache allocates memory for a thousand objects with the first one; with
// hundreds of stores that was a tenth of the operator's memory. Not safe for concurrent use.
type objectCache struct {
	*lru.Cache[plumbing.Hash, plumbing.EncodedObject]
}

var _ cache.Object = objectCache{}

func newObjectCache() objectCache {
	return objectCache{lru.New[plumbing.Hash](maxObjectCache, func(o plumbing.EncodedObject) int64 { return o.Size() + objectCost })}
}

// Put implements cache.Object.
func (c objectCache) Put(o plumbing.EncodedObject) { c.Add(o.Hash(), o) }
