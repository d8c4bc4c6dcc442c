package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clusterScoped says why an app may not hold a cluster-scoped object, or nothing. What gives rights in the whole cluster it
// never may, whatever is allowed to its tenant.
func clusterScoped(object *unstructured.Unstructured, clusterKinds []string) string {
	kind := object.GroupVersionKind()
	name := kind.Kind + "." + kind.Group
	switch {
	case kind.Group == "" || kind.Group == rbacGroup:
		return "is cluster-scoped; an app may only hold namespaced objects"
	case !slices.Contains(clusterKinds, name):
		return fmt.Sprintf("is cluster-scoped; an app may only hold namespaced objects, unless administrators list %s in spec.clusterKinds of the Tenant", oneLine(name))
	}
	return platformDefinition(object)
}

// platformDefinition: the CustomResourceDefinition would change kubeop's own kinds or Kubernetes'.
func platformDefinition(object *unstructured.Unstructured) string {
	if !isDefinition(object) {
		return ""
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	for _, reserved := range []string{"k8s.io", "kubernetes.io"} {
		if isOurs(group) || group == reserved || strings.HasSuffix(group, "."+reserved) {
			return fmt.Sprintf("defines a kind of API group %s, which is the platform's", oneLine(group))
		}
	}
	return ""
}

func isDefinition(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// WithDefinitions returns a Scope that knows, besides what the API server serves, the kinds that CustomResourceDefinitions
// among the objects define.
func WithDefinitions(objects []*unstructured.Unstructured, scope Scope) Scope {
	type version struct{ group, kind, name string }
	defined := map[version]bool{}
	for _, o := range objects {
		if !isDefinition(o) {
			continue
		}
		text := func(path ...string) string { value, _, _ := unstructured.NestedString(o.Object, path...); return value }
		versions, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "versions")
		list, _ := versions.([]any)
		for _, v := range list {
			of, _ := v.(map[string]any)
			name, _ := of["name"].(string)
			defined[version{text("spec", "group"), text("spec", "names", "kind"), name}] = text("spec", "scope") == "Namespaced"
		}
	}
	return func(kind schema.GroupVersionKind) (bool, error) {
		namespaced, err := scope(kind)
		if meta.IsNoMatchError(err) {
			if of, ok := defined[version{kind.Group, kind.Kind, kind.Version}]; ok {
				return of, nil
			}
		}
		return namespaced, err
	}
}
