package policy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/crd"
)

// Platform are the bounds of the apps of the platform itself, which only administrators can declare. They prevent changes by mistake of
// objects that kubeop created for itself and for tenants.
type Platform struct {
	// ClusterWide allows objects of every cluster-scoped kind, and objects in other namespaces than the app's.
	ClusterWide bool
	// Operator is the operator's own namespace, in which no app may have objects.
	Operator string
}

// onlyNamespaced says how an app can have objects outside of its own namespace.
const onlyNamespaced = "platformApps of kubeop's chart is Namespaced; take it out, or ask an administrator of the cluster to set platformApps to ClusterAdmin, which lets every app of the platform change everything in the cluster"

// foreignNamespace: the object names a namespace in which the app may not have objects.
func (p *Platform) foreignNamespace(object *unstructured.Unstructured, namespace string) string {
	named, _, err := unstructured.NestedString(object.Object, "metadata", "namespace")
	switch {
	case err != nil:
		return "has a namespace that is no text"
	case named == "" || named == namespace:
		return ""
	case strings.HasPrefix(named, reserved) || named == p.Operator:
		return fmt.Sprintf("is for namespace %s, which belongs to a tenant or to kubeop itself", oneLine(named))
	case !p.ClusterWide:
		return fmt.Sprintf("is for namespace %s; this app's is %s, and %s", oneLine(named), namespace, onlyNamespaced)
	}
	return ""
}

// clusterScoped returns why an app may not have a cluster-scoped object; "" if it may.
func (p *Platform) clusterScoped(object *unstructured.Unstructured) string {
	switch {
	case !p.ClusterWide:
		return "is cluster-scoped, and " + onlyNamespaced
	case strings.HasPrefix(object.GetName(), reserved) || object.GetName() == p.Operator && object.GetKind() == "Namespace":
		return "is kubeop's own, or a tenant's; choose another name in Git"
	case crd.Is(object) && isOurs(crd.Defines(object).Group):
		return "defines a kind of kubeop, which kubeop's chart installs"
	}
	return ""
}
