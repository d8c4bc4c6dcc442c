package policy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/crd"
)

// AskPlatform says how an app that no tenant may have can run all the same.
const AskPlatform = "ask an administrator of the cluster to deliver it from platform/ of the platform repository"

// clusterScoped returns why an app may not have a cluster-scoped object; "" if it may. An object that grants rights in the whole cluster is
// always refused, whatever the tenant is allowed.
func (b Bounds) clusterScoped(object *unstructured.Unstructured) string {
	if b.Platform != nil {
		return b.Platform.clusterScoped(object)
	}
	kind := object.GroupVersionKind()
	name := kind.Kind + "." + kind.Group
	switch {
	case kind.Group == rbacGroup:
		return "is cluster-scoped; an app may only hold namespaced objects: use a Role and a RoleBinding, or " + AskPlatform
	case kind.Group == "":
		return "is cluster-scoped; an app may only hold namespaced objects: take it out, and " + AskPlatform
	case !slices.Contains(b.ClusterKinds, name):
		return fmt.Sprintf("is cluster-scoped; an app may only hold namespaced objects: take it out, or ask an administrator of the cluster to list %s in %s, or to deliver the app from platform/ there",
			oneLine(name), command.OfTenant("spec.clusterKinds"))
	}
	return platformDefinition(object)
}

// platformDefinition: the CustomResourceDefinition would change kubeop's own kinds or Kubernetes'.
func platformDefinition(object *unstructured.Unstructured) string {
	if !crd.Is(object) {
		return ""
	}
	if group := crd.Defines(object).Group; crd.Protected(group) {
		return fmt.Sprintf("defines a kind of API group %s, which is the platform's", oneLine(group))
	}
	return ""
}

// WithDefinitions returns a Scope that knows the kinds that the API server serves and, in addition, those that CustomResourceDefinitions
// among the objects define.
func WithDefinitions(objects []*unstructured.Unstructured, scope Scope) Scope {
	defined := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		if !crd.Is(o) {
			continue
		}
		of := crd.Defines(o)
		reach, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "versions")
		list, _ := versions.([]any)
		for _, v := range list {
			fields, _ := v.(map[string]any)
			name, _ := fields["name"].(string)
			defined[of.WithVersion(name)] = reach == "Namespaced"
		}
	}
	return func(kind schema.GroupVersionKind) (bool, error) {
		namespaced, err := scope(kind)
		if meta.IsNoMatchError(err) {
			if of, ok := defined[kind]; ok {
				return of, nil
			}
		}
		return namespaced, err
	}
}
