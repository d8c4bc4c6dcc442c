package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// TestWhoseHookIsLeft tells apart what hooks of apps of one name left, in the cluster as in a namespace.
func TestWhoseHookIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, tenant string
		left              bool
	}{
		"in the namespace":          {"kubeop-acme-shop", "acme", true},
		"cluster-scoped":            {"", "acme", true},
		"another tenant's, as wide": {"", "other", false},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}}
		live.SetNamespace(c.namespace)
		live.SetName("one")
		live.SetLabels(map[string]string{v1alpha1.TenantLabel: c.tenant, v1alpha1.ProjectLabel: "shop", decide.AppLabel: "web"})
		client := &Client{Release: Objects{Release: types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}}, Terms: Terms{App: "web"}}
		client.Terms.Ran = map[manifest.Identity]bool{client.Release.Identify(live): true}
		if got := client.hookLeft(live); got != c.left {
			t.Errorf("%s: %t, want %t", name, got, c.left)
		}
	}
}
