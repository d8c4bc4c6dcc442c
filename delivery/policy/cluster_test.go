package policy

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const definition = "CustomResourceDefinition.apiextensions.k8s.io"

func definitionOf(group, scope string) string {
	return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets}, spec: {group: ` + group +
		`, scope: ` + scope + `, names: {kind: Unheard}, versions: [{name: v1}]}}`
}

func TestClusterScopedObjectsNeedTheirKindInTheTenant(t *testing.T) {
	tests := map[string]struct {
		object string
		kinds  []string
		want   string // Empty: allowed.
	}{
		"not listed": {definitionOf("example.com", "Cluster"), nil, "CustomResourceDefinition/widgets is cluster-scoped; an app may only hold namespaced objects: take it out, " +
			"or ask an administrator of the cluster to list CustomResourceDefinition.apiextensions.k8s.io in spec.clusterKinds of the Tenant, in tenant.yaml of the platform repository, or to deliver the app from platform/ there"},
		"listed":             {definitionOf("example.com", "Cluster"), []string{definition}, ""},
		"RBAC though listed": {clusterRole, []string{"ClusterRole.rbac.authorization.k8s.io"}, refusedRole},
		"a core kind":        {`{apiVersion: v1, kind: Namespace, metadata: {name: a}}`, []string{"Namespace."}, refusedNamespace},
		"of our group":       {`{apiVersion: paas.kubeop.io/v1alpha1, kind: Tenant, metadata: {name: a}}`, []string{"Tenant.paas.kubeop.io"}, "Tenant/a is of API group paas.kubeop.io; kubeop's own objects belong in the tenant's repository, not in an app"},
		"defines a kind of ours": {definitionOf("paas.kubeop.io", "Cluster"), []string{definition},
			"CustomResourceDefinition/widgets defines a kind of API group paas.kubeop.io, which is the platform's"},
		"defines a kind of Kubernetes'": {definitionOf("apps.k8s.io", "Cluster"), []string{definition},
			"CustomResourceDefinition/widgets defines a kind of API group apps.k8s.io, which is the platform's"},
		"defines a kind of a group on two lines": {strings.Replace(definitionOf("GROUP", "Cluster"), "GROUP", `"a\n.k8s.io"`, 1), []string{definition},
			"CustomResourceDefinition/widgets defines a kind of API group a .k8s.io, which is the platform's"},
		"has a field like that of a definition": {`{apiVersion: example.com/v1, kind: Tenant, metadata: {name: a}, spec: {group: apps.k8s.io}}`, []string{"Tenant.example.com"}, ""},
		"with a label of ours": {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, labels: {paas.kubeop.io/app: x}}}`, []string{definition},
			"CustomResourceDefinition/a carries paas.kubeop.io/app; only kubeop sets labels, annotations and finalizers of paas.kubeop.io"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := Check([]*unstructured.Unstructured{object(t, tc.object)}, Bounds{Namespace: namespace, ClusterKinds: tc.kinds}, scope)
			if got := text(err); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAKindThatTheSetDefinesIsKnown(t *testing.T) {
	unheard := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unheard"}
	for of, want := range map[string]bool{"Namespaced": true, "Cluster": false} {
		known := WithDefinitions([]*unstructured.Unstructured{
			object(t, `{apiVersion: example.com/v1, kind: Form, metadata: {name: a}, spec: {group: example.org, names: {kind: Unheard}, versions: [{name: v1}]}}`),
			object(t, definitionOf("example.com", of)),
		}, scope)
		if namespaced, err := known(unheard); err != nil || namespaced != want {
			t.Errorf("%s: got %t and %v", of, namespaced, err)
		}
		for _, other := range []schema.GroupVersionKind{{Group: "example.com", Version: "v2", Kind: "Unheard"}, {Group: "example.org", Version: "v1", Kind: "Unheard"}} {
			if _, err := known(other); err == nil {
				t.Errorf("%s is known", other)
			}
		}
	}
}
