// Package crd reads CustomResourceDefinitions. It is pure.
package crd

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/condition"
)

// Kind of definitions, in the version that kubeop reads.
var Kind = schema.GroupVersionKind{Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition"}

// Is reports whether an object is a CustomResourceDefinition of any version.
func Is(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == Kind.GroupKind()
}

// Defines returns the group and kind of the objects that a definition defines.
func Defines(definition *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// Established reports whether a definition's status says that the API server serves its kind.
func Established(definition *unstructured.Unstructured) bool {
	_, ok := condition.True(definition, string(apiextensionsv1.Established))
	return ok
}

// Protected reports whether no app may define a kind of an API group, because the platform trusts the group's kinds: those of kubeop's own
// groups and of the groups of Kubernetes' community
// (https://kubernetes.io/docs/reference/labels-annotations-taints/#api-approved-kubernetes-io).
func Protected(group string) bool {
	group = strings.ToLower(group)
	return slices.ContainsFunc([]string{v1alpha1.Group, "k8s.io", "kubernetes.io"}, func(domain string) bool {
		return group == domain || strings.HasSuffix(group, "."+domain)
	})
}
