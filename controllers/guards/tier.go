package guards

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubeop/kubeop/delivery/isolation"
)

// AdminTier knows whether the API server serves ClusterNetworkPolicies, the tier of network policies that no NetworkPolicy overrides. It makes no watch of
// them, so nothing fails without their definition. Safe for concurrent use.
type AdminTier struct {
	// Mapper knows what the API server serves. It answers from memory, and forgets what is no longer served.
	Mapper meta.RESTMapper
	// Off: kubeop writes none, as if they were not served.
	Off bool

	mu     sync.Mutex
	served bool
	wake   []func()
}

// Served reports whether kubeop writes ClusterNetworkPolicies: whether the API server serves them in the version that it knows.
func (t *AdminTier) Served() (bool, error) {
	if t.Off {
		return false, nil
	}
	kind := isolation.ClusterPolicyKind
	_, err := t.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// OnChange registers f, which is called when the API server begins or ends to serve the kind. f must not block.
func (t *AdminTier) OnChange(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake = append(t.wake, f)
}

// Look calls the functions of OnChange if the API server began or ended to serve the kind since the last call. Call it when it may serve other kinds than
// before. If that cannot be found out, what depends on it is reconciled at its interval.
func (t *AdminTier) Look() {
	served, err := t.Served()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || served == t.served {
		return
	}
	t.served = served
	for _, f := range t.wake {
		f()
	}
}
