package cluster

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"

	"github.com/kubeop/kubeop/delivery/release/cause"
)

// discovered answers what is served of a version.
type discovered struct {
	discovery.CachedDiscoveryInterface
	err error
}

func (d discovered) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, d.err
}

func TestAKindOfAnUnavailableServerIsNotGone(t *testing.T) {
	thing := object(t, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: one}\n")
	nothing := meta.NewDefaultRESTMapper(nil)
	for err, gone := range map[error]bool{nil: true, memory.ErrCacheNotFound: true, errors.New("stale"): false} {
		c := &Client{kinds: NewKinds(discovered{err: err}, nothing)}
		info, got := c.formerly(thing)
		if info != nil || (got == nil) != gone || got != nil && (!cause.IsEnvironment(got) || !strings.Contains(got.Error(), "example.com/v1")) {
			t.Errorf("%v: %v, %v", err, info, got)
		}
	}
}
