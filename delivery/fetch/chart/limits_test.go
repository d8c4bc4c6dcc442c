package chart

import (
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// TestTheLimitsOfANewStoreAreTheDocumentedOnes: the other tests lower them.
func TestTheLimitsOfANewStoreAreTheDocumentedOnes(t *testing.T) {
	want := limits{index: 64 << 20, indexDoc: 2 << 20, chart: 20 << 20, Timeouts: transport.DefaultTimeouts()}
	if got := NewStore(t.TempDir(), nil).limits; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
