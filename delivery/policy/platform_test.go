package policy

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAppsOfThePlatformAreBounded(t *testing.T) {
	const clusterAdmin = "platformApps of kubeop's chart is Namespaced; take it out, or ask an administrator of the cluster to set platformApps to ClusterAdmin, which lets every app of the platform change everything in the cluster"
	networkPolicy := `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}}`
	elsewhere := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}`
	tests := map[string]struct {
		object               string
		namespaced, anywhere string // Empty: allowed.
	}{
		"a network policy":            {networkPolicy, "", ""},
		"in its own namespace":        {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ` + namespace + `}}`, "", ""},
		"in another namespace":        {elsewhere, "ConfigMap/a is for namespace kube-system; this app's is " + namespace + ", and " + clusterAdmin, ""},
		"in a tenant's namespace":     {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kubeop-acme-shop}}`, "ConfigMap/a is for namespace kubeop-acme-shop, which belongs to a tenant or to kubeop itself", "same"},
		"in the operator's namespace": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: paas}}`, "ConfigMap/a is for namespace paas, which belongs to a tenant or to kubeop itself", "same"},
		"a namespace that is no text": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: 1}}`, "ConfigMap/a has a namespace that is no text", "same"},
		"cluster-scoped":              {`{apiVersion: v1, kind: Namespace, metadata: {name: a}}`, "Namespace/a is cluster-scoped, and " + clusterAdmin, ""},
		"a role of the cluster":       {clusterRole, "ClusterRole/admin is cluster-scoped, and " + clusterAdmin, ""},
		"a definition of Kubernetes":  {definitionOf("gateway.networking.k8s.io", "Cluster"), "CustomResourceDefinition/widgets is cluster-scoped, and " + clusterAdmin, ""},
		"a definition of kubeop":      {definitionOf("paas.kubeop.io", "Cluster"), "CustomResourceDefinition/widgets is cluster-scoped, and " + clusterAdmin, "CustomResourceDefinition/widgets defines a kind of kubeop, which kubeop's chart installs"},
		"a namespace of a tenant":     {`{apiVersion: v1, kind: Namespace, metadata: {name: kubeop-acme}}`, "Namespace/kubeop-acme is cluster-scoped, and " + clusterAdmin, "Namespace/kubeop-acme is kubeop's own, or a tenant's; choose another name in Git"},
		"the operator's own":          {`{apiVersion: v1, kind: Namespace, metadata: {name: paas}}`, "Namespace/paas is cluster-scoped, and " + clusterAdmin, "Namespace/paas is kubeop's own, or a tenant's; choose another name in Git"},
		"another kind named so":       {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: paas}}`, "ClusterRole/paas is cluster-scoped, and " + clusterAdmin, ""},
		"a field like a definition's": {`{apiVersion: example.com/v1, kind: Tenant, metadata: {name: a}, spec: {group: paas.kubeop.io}}`, "Tenant/a is cluster-scoped, and " + clusterAdmin, ""},
		"kubeop's account":            {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: kubeop-deployer}}`, "ServiceAccount/kubeop-deployer is refused: the platform's own ServiceAccounts start with kubeop-; choose another name in Git", "same"},
	}
	for name, tc := range tests {
		if tc.anywhere == "same" {
			tc.anywhere = tc.namespaced
		}
		t.Run(name, func(t *testing.T) {
			for everywhere, want := range map[bool]string{false: tc.namespaced, true: tc.anywhere} {
				bounds := Bounds{Namespace: namespace, Platform: &Platform{ClusterWide: everywhere, Operator: "paas"}}
				err := Check([]*unstructured.Unstructured{object(t, tc.object)}, bounds, scope)
				if got := text(err); got != want {
					t.Errorf("cluster-wide %t:\ngot  %q\nwant %q", everywhere, got, want)
				}
				if found, _ := Violations(err); strings.Contains(want, " is for namespace ") && found[0].Rule != "ForeignNamespace" {
					t.Errorf("the rule is %s", found[0].Rule)
				}
			}
		})
	}
}
