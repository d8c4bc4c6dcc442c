package cluster

import (
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// OfRevision returns the objects of a revision without hooks: those of its namespace, and the shared ones. It leaves out objects of other
// namespaces, which an App of a tenant may not have whatever a record says; for a release of the platform itself, these are shared.
func OfRevision(mapper meta.RESTMapper, rel *helm.Release, platform bool) (own, shared []*unstructured.Unstructured, err error) {
	docs, err := manifest.Parse(rel.Manifest)
	if err != nil {
		return nil, nil, fmt.Errorf("reading revision %d: %w", rel.Version, err)
	}
	for _, u := range manifest.Objects(docs) {
		kind := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, nil, fmt.Errorf("finding the scope of %s/%s: %w", u.GetKind(), u.GetName(), err)
		}
		if err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			u.SetNamespace("")
		} else if u.GetNamespace() == "" {
			u.SetNamespace(rel.Namespace)
		}
		switch {
		case u.GetNamespace() == rel.Namespace:
			own = append(own, u)
		case u.GetNamespace() == "" || platform:
			shared = append(shared, u)
		}
	}
	return own, shared, nil
}
