package artifact

import (
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// TestTheLimitsOfANewStoreAreTheDocumentedOnes: the other tests lower them.
func TestTheLimitsOfANewStoreAreTheDocumentedOnes(t *testing.T) {
	want := limits{
		archive: 64 << 20, unpacked: 256 << 20, unpackedFile: 16 << 20, files: 50_000, depth: 32, path: 1024, paths: 8 << 20,
		Timeouts: transport.DefaultTimeouts(),
	}
	if got := NewStore(t.TempDir(), nil).limits; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
