package git

import (
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// limits bound what one source can cost. They are fields so that tests can lower them. Sizes are in bytes; exceeding a time limit is a
// transient error.
type limits struct {
	refs        int64       // the list of a remote's refs
	pack        int64       // what one Git fetch transfers
	history     int64       // what is transferred to find out whether a commit descends from another
	generations int         // how many consecutive commits are compared for that
	contents    pack.Limits // the objects of one Git fetch
	packs       int         // packs in a store before a new store is started

	folder.Limits // what is read of a commit; File also bounds commits, tags and trees
	transport.Timeouts
}

func defaultLimits() limits {
	return limits{
		refs:        32 * limit.MiB,
		pack:        256 * limit.MiB,
		history:     64 * limit.MiB,
		generations: 10_000,
		contents: pack.Limits{
			Objects: 250_000, Inflated: 1 * limit.GiB, Object: 64 * limit.MiB, Oversized: 512 * limit.MiB, Chain: 64 * limit.MiB,
			Base: 8 * limit.MiB, Bases: 32 * limit.MiB,
		},
		packs: 50,

		Limits:   folder.DefaultLimits(),
		Timeouts: transport.DefaultTimeouts(),
	}
}
