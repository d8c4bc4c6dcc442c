// Package targetnamespace moves objects whose author chose a namespace into another one, as the field targetNamespace of Flux and the
// namespace of a kustomization do.
package targetnamespace

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/policy"
)

// Set moves the namespaced objects into the namespace target, in place. References from one of the objects to a namespace that another one
// named are changed too: the service accounts of bindings, and the services of webhooks, of conversions and of API services.
//
// kept are the objects without the Namespace objects of the names that were replaced, which nothing needs any more. An object of an unknown
// kind keeps its namespace, because it may be cluster-scoped; policy.Check refuses it. Any other error of scope is returned. Setting the same namespace twice changes nothing.
func Set(objects []*unstructured.Unstructured, target string, scope policy.Scope) (kept []*unstructured.Unstructured, err error) {
	replaced := map[string]bool{}
	for _, o := range objects {
		switch namespaced, err := scope(o.GroupVersionKind()); {
		case meta.IsNoMatchError(err), errors.As(err, new(*kube.UnkeptKindError)):
			continue
		case err != nil:
			return nil, fmt.Errorf("finding the scope of %s: %w", policy.NameOf(o), err)
		case !namespaced:
			continue
		}
		if named := o.GetNamespace(); named != "" && named != target {
			replaced[named] = true
		}
		o.SetNamespace(target)
	}
	for _, o := range objects {
		if namespaceKind == o.GroupVersionKind().GroupKind() && replaced[o.GetName()] {
			continue
		}
		for _, reference := range references(o) {
			if named, ok := reference["namespace"].(string); ok && replaced[named] {
				reference["namespace"] = target
			}
		}
		kept = append(kept, o)
	}
	return kept, nil
}

const (
	rbac      = "rbac.authorization.k8s.io"
	admission = "admissionregistration.k8s.io"
)

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// references returns the parts of an object that refer to an object in a namespace by the fields name and namespace.
func references(o *unstructured.Unstructured) []map[string]any {
	switch o.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: rbac, Kind: "RoleBinding"}, schema.GroupKind{Group: rbac, Kind: "ClusterRoleBinding"}:
		return items(o.Object, "subjects")
	case schema.GroupKind{Group: admission, Kind: "MutatingWebhookConfiguration"}, schema.GroupKind{Group: admission, Kind: "ValidatingWebhookConfiguration"}:
		var services []map[string]any
		for _, webhook := range items(o.Object, "webhooks") {
			services = append(services, part(webhook, "clientConfig", "service")...)
		}
		return services
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return part(o.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return part(o.Object, "spec", "service")
	}
	return nil
}

// part returns the mapping at a path; none if there is no mapping.
func part(in map[string]any, path ...string) []map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(in, path...)
	if fields, ok := found.(map[string]any); ok {
		return []map[string]any{fields}
	}
	return nil
}

// items returns the mappings in the list of a field.
func items(in map[string]any, field string) []map[string]any {
	list, _ := in[field].([]any)
	var out []map[string]any
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			out = append(out, fields)
		}
	}
	return out
}
