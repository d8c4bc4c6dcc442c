package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestATrustedTenantMayDefineKinds: administrators allow a tenant's apps to define kinds, and revoke it.
func TestATrustedTenantMayDefineKinds(t *testing.T) {
	n := newTeam(t, "trusted")
	n.platformRole("definitions", "cluster-kinds", "apiextensions.k8s.io", "customresourcedefinitions")
	n.platformRole("gadgets", "deployer", "trusted.example.com", "gadgets")
	files := shopFiles("shop", "web")
	files["projects/shop/apps/bad/app.yaml"] = rawApp(oneLine(gadgetDefinition), gadget)["app.yaml"]
	n.push(files)
	app := n.app("shop", "bad")
	message := n.until(app, v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
	if want := "list CustomResourceDefinition.apiextensions.k8s.io in spec.clusterKinds of the Tenant"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
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

// all are the verbs that an app needs for what it holds.
var all = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// platformRole makes a ClusterRole with a label by which the chart's roles take it in.
func (n *team) platformRole(name, to, group, resource string) *rbacv1.ClusterRole {
	n.t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: n.name + "-" + name, Labels: map[string]string{"paas.kubeop.io/aggregate-to-" + to: "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: all}},
	}
	n.create(role)
	return role
}

// granted waits until the deployer's ClusterRole covers exactly these resources.
func (n *team) granted(role *rbacv1.ClusterRole, resources ...string) {
	n.t.Helper()
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err
		}
		var has []string
		for _, rule := range role.Rules {
			has = append(has, rule.Resources...)
		}
		if !slices.Equal(has, resources) {
			return fmt.Errorf("the ClusterRole covers %v, want %v", has, resources)
		}
		return nil
	})
}

// TestRevokedGrantsAreDeleted removes cluster-scoped kinds from a Tenant's list while others cannot be granted, and while the
// project is blocked by the tenant's own files.
func TestRevokedGrantsAreDeleted(t *testing.T) {
	n := newTeam(t, "retracted")
	const priorities, runtimes, drivers = "PriorityClass.scheduling.k8s.io", "RuntimeClass.node.k8s.io", "CSIDriver.storage.k8s.io"
	n.platformRole("priorities", "cluster-kinds", "scheduling.k8s.io", "priorityclasses")
	n.platformRole("drivers", "cluster-kinds", "storage.k8s.io", "csidrivers")
	handedOut := n.platformRole("runtimes", "cluster-kinds", "node.k8s.io", "runtimeclasses")
	n.clusterKinds(priorities, runtimes)
	n.push(shopFiles("shop", "web"))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cluster-retracted-shop"}}
	n.granted(role, "priorityclasses", "runtimeclasses")

	if err := n.admin.Delete(t.Context(), handedOut); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		held := &rbacv1.ClusterRole{}
		err := n.admin.Get(t.Context(), client.ObjectKey{Name: "kubeop-cluster-kinds"}, held)
		if err == nil && strings.Contains(fmt.Sprint(held.Rules), "runtimeclasses") {
			err = fmt.Errorf("the operator can still grant the right")
		}
		return err
	})
	n.clusterKinds(runtimes)
	n.gone(role)
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-retracted", Name: "shop"}}
	message := n.until(project, v1alpha1.AccessReadyCondition, metav1.ConditionFalse, v1alpha1.ApplyFailedReason)
	if !strings.Contains(message, "aggregate-to-cluster-kinds") || !strings.Contains(message, "runtimeclasses") {
		t.Errorf("it says %q", message)
	}
	n.clusterKinds(runtimes, drivers)
	n.granted(role, "csidrivers")

	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop") + "spec: {quota: {pods: \"1000000\"}}\n"})
	n.until(project, v1alpha1.GuardrailsReadyCondition, metav1.ConditionFalse, v1alpha1.QuotaExceededReason)
	n.clusterKinds()
	n.gone(role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}})
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(project), project); err != nil {
			return err
		}
		if recorded := fmt.Sprint(project.Status.Inventory); strings.Contains(recorded, role.Name) {
			return fmt.Errorf("the inventory still has a deleted object: %s", recorded)
		}
		return nil
	})
}

// TestABlockedDeletionKeepsNoRights removes cluster-scoped kinds from a Tenant's list while an object blocks the deletion of
// its project.
func TestABlockedDeletionKeepsNoRights(t *testing.T) {
	n := newTeam(t, "grasping")
	n.platformRole("priorities", "cluster-kinds", "scheduling.k8s.io", "priorityclasses")
	n.platformRole("ingresses", "cluster-kinds", "networking.k8s.io", "ingressclasses")
	n.clusterKinds("PriorityClass.scheduling.k8s.io", "IngressClass.networking.k8s.io")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cluster-grasping-shop"}}
	n.granted(role, "priorityclasses", "ingressclasses")
	config := n.configMap("shop", "web")
	n.edit(config, `{"metadata":{"finalizers":["example.com/held"]}}`)
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-grasping", Name: "shop"}}
	n.deleteOnPurpose(project)
	n.until(project, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.DeletingReason)
	n.granted(role, "priorityclasses", "ingressclasses")

	n.clusterKinds("PriorityClass.scheduling.k8s.io")
	n.granted(role, "priorityclasses")
	n.clusterKinds("Nothing.example.com")
	n.gone(role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}})
	if message, want := n.until(project, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.DeletingReason), "waits for apps web;"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	n.edit(config, `{"metadata":{"finalizers":null}}`)
	n.gone(config)
}

const (
	engineDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: engines.judging.example.com}, spec: {
		group: judging.example.com, scope: Namespaced, names: {plural: engines, singular: engine, kind: Engine, listKind: EngineList},
		versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	engineChecks = "  healthCheckExprs:\n  - {apiVersion: judging.example.com/v1, kind: Engine, current: \"status.phase == 'Running'\", failed: \"status.phase == 'Broken'\"}\n"
)

// TestAnAppWaitsForTheHealthOfAKindThatItDefines: an app defines a kind and has two objects of it, whose status the test writes as a controller would.
func TestAnAppWaitsForTheHealthOfAKindThatItDefines(t *testing.T) {
	n := newTeam(t, "judging")
	n.platformRole("definitions", "cluster-kinds", "apiextensions.k8s.io", "customresourcedefinitions")
	n.platformRole("engines", "deployer", "judging.example.com", "engines")
	n.platformRole("watched", "watch", "judging.example.com", "engines")
	n.clusterKinds("CustomResourceDefinition.apiextensions.k8s.io")
	files := shopFiles("shop")
	engine := func(name string) string {
		return "{apiVersion: judging.example.com/v1, kind: Engine, metadata: {name: " + name + "}, spec: {size: 1}}"
	}
	files["projects/shop/apps/bad/app.yaml"] = rawApp(oneLine(engineDefinition), engine("one"), engine("two"))["app.yaml"] + engineChecks
	n.push(files)
	app := n.app("shop", "bad")
	say := func(name, phase string) time.Time {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(schema.GroupVersionKind{Group: "judging.example.com", Version: "v1", Kind: "Engine"})
		n.eventually(func() error {
			if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: app.Namespace, Name: name}, live); err != nil {
				return err
			}
			live.Object["status"] = map[string]any{"phase": phase}
			return n.admin.Status().Update(t.Context(), live)
		})
		return time.Now()
	}
	say("one", "Running")
	n.eventually(func() error {
		if got := n.until(app, v1alpha1.HealthyCondition, metav1.ConditionUnknown, v1alpha1.ProgressingReason); got != "Engine/two: is in progress, as healthCheckExprs say" {
			return fmt.Errorf("the message of the app is %q, want %q", got, "Engine/two: is in progress, as healthCheckExprs say")
		}
		return nil
	})
	took := func(what string, since time.Time) {
		if d := time.Since(since); d > 20*time.Second {
			t.Errorf("%s took %s", what, d)
		}
		t.Logf("%s took %s", what, time.Since(since))
	}
	said := say("two", "Running")
	n.ready(app)
	took("ready", said)
	said = say("one", "Broken")
	if got, want := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.UnhealthyReason), "Engine/one"; !strings.Contains(got, want) {
		t.Errorf("the message is %q, want %q in it", got, want)
	}
	took("not ready", said)
	said = say("one", "Running")
	n.ready(app)
	took("ready again", said)
	n.push(map[string]string{"projects/shop/apps/bad": "-"})
	n.gone(app)
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
