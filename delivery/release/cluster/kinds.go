package cluster

import (
	"fmt"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/kubeop/kubeop/delivery/crd"
)

// helmVersion is the version that charts see. It is that of the helm command of the version in go.mod; the SDK itself reports only "v3.22".
const helmVersion = "v3.22.0"

// Kinds caches which kinds the API server serves. All actions share it, and it is read with the operator's rights.
type Kinds struct {
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper

	mu   sync.Mutex
	caps *chartutil.Capabilities
}

// NewKinds returns the kinds that discovery and mapper know.
func NewKinds(d discovery.CachedDiscoveryInterface, m meta.RESTMapper) *Kinds {
	return &Kinds{discovery: d, mapper: m}
}

// Capabilities returns Helm's capabilities, which are read once until Refresh; actions must not change them. If discovery has them cached,
// that costs no request. Kinds of an unavailable aggregated API server are missing.
func (k *Kinds) Capabilities() (*chartutil.Capabilities, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.caps != nil {
		return k.caps, nil
	}
	version, err := k.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for the cluster's version: %w", err)
	}
	apis, err := action.GetVersionSet(k.discovery)
	if err != nil {
		return nil, fmt.Errorf("asking for the cluster's APIs: %w", err)
	}
	helm := chartutil.DefaultCapabilities.HelmVersion
	helm.Version = helmVersion
	k.caps = &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		APIVersions: apis,
		HelmVersion: helm,
	}
	return k.caps, nil
}

// Refresh makes the next use read everything again. It sends no request.
func (k *Kinds) Refresh() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.caps = nil
	k.discovery.Invalidate()
	if m, ok := k.mapper.(meta.ResettableRESTMapper); ok {
		m.Reset()
	}
}

// knows reports whether the mapper knows a definition's kind.
func (k *Kinds) knows(definition *unstructured.Unstructured) (bool, error) {
	_, err := k.mapper.RESTMapping(crd.Defines(definition))
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}
