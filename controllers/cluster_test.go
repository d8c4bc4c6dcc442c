package controllers

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	gadgetDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.trusted.example.com}, spec: {
		group: trusted.example.com, scope: Namespaced, names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	gadget = `{apiVersion: trusted.example.com/v1, kind: Gadget, metadata: {name: one}, spec: {size: 1}}`
)

// TestATrustedTenantBringsItsKinds has administrators allow a tenant's apps to define kinds, and take that back.
func TestATrustedTenantBringsItsKinds(t *testing.T) {
	n := newTeam(t, "trusted")
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	n.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "platform-definitions", Labels: map[string]string{"paas.kubeop.io/aggregate-to-cluster-kinds": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: all}},
	})
	n.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "platform-gadgets", Labels: map[string]string{"paas.kubeop.io/aggregate-to-deployer": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"trusted.example.com"}, Resources: []string{"gadgets"}, Verbs: all}},
	})
	files := shopFiles("shop", "web")
	files["projects/shop/apps/bad/app.yaml"] = rawApp(oneLine(gadgetDefinition), gadget)["app.yaml"]
	n.push(files)
	app := n.app("shop", "bad")
	message := n.until(app, v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
	if !strings.Contains(message, "list CustomResourceDefinition.apiextensions.k8s.io in spec.clusterKinds of the Tenant") {
		t.Errorf("the message is %s", message)
	}

	n.clusterKinds("CustomResourceDefinition.apiextensions.k8s.io")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cluster-trusted-shop"}}
	n.eventually(func() error { return n.admin.Get(t.Context(), client.ObjectKeyFromObject(role), role) })
	n.reconcile(app)
	n.ready(app)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: "trusted.example.com", Version: "v1", Kind: "Gadget"})
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: app.Namespace, Name: "one"}, live); err != nil {
		t.Fatal(err)
	}
	definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.trusted.example.com"}}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil || definition.Labels[v1alpha1.AppLabel] != "bad" {
		t.Errorf("the definition is labelled %v, %v", definition.Labels, err)
	}

	n.push(map[string]string{"projects/shop/apps/bad": "-"})
	n.gone(app)
	n.clusterKinds()
	n.gone(role)
	n.gone(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}})
}

// oneLine is YAML on one line of its own.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// clusterKinds says which cluster-scoped kinds the tenant's apps may hold.
func (n *team) clusterKinds(kinds ...string) {
	n.t.Helper()
	tenant := &v1alpha1.Tenant{}
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: n.name}, tenant); err != nil {
			return err
		}
		tenant.Spec.ClusterKinds = kinds
		return n.admin.Update(n.t.Context(), tenant)
	})
}
