package artifact

import (
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// limits bound what one artifact can cost. They are fields so that tests can lower them; sizes are in bytes.
type limits struct {
	archive      int64 // an archive of manifests
	unpacked     int64 // the same inflated
	unpackedFile int64 // a file in it
	files        int   // files and folders in it
	depth        int   // folders inside each other
	path         int   // the length of a path in it
	paths        int64 // all its paths together

	transport.Timeouts
}

func defaultLimits() limits {
	return limits{
		archive:      64 * limit.MiB,
		unpacked:     256 * limit.MiB,
		unpackedFile: 16 * limit.MiB,
		files:        50_000,
		depth:        32,
		path:         1024,
		paths:        8 * limit.MiB,
		Timeouts:     transport.DefaultTimeouts(),
	}
}
