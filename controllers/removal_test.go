package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestARemovedTenantLeavesNothing(t *testing.T) {
	n := newTeam(t, "leaving")
	n.push(withRelease(shopFiles("shop", "web")))
	n.ready(n.app("shop", "web"), n.app("shop", "released"))
	owner := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}}
	n.deleteOnPurpose(owner)
	n.gone(owner, n.repository(), namespace("kubeop-leaving-shop"), namespace("kubeop-leaving"),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-leaving"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-leaving"}})
}

func TestAnOrphanedProjectKeepsRunning(t *testing.T) {
	n := newTeam(t, "orphans")
	files := withRelease(shopFiles("shop", "web"))
	files["projects/shop/project.yaml"] += "spec: {deletionPolicy: Orphan}\n"
	for k, v := range shopFiles("other", "a", "b", "c") {
		files[k] = v
	}
	n.push(files)
	n.ready(n.app("shop", "web"), n.app("shop", "released"), n.app("other", "a"))
	n.push(map[string]string{"projects/shop": "-"})
	n.gone(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-orphans", Name: "shop"}}, n.app("shop", "web"))
	n.configMap("shop", "web")
	n.configMap("shop", "released")
}

// TestADeletedTenantIgnoresOrphanPolicies deletes a tenant whose project has the deletion policy Orphan.
func TestADeletedTenantIgnoresOrphanPolicies(t *testing.T) {
	n := newTeam(t, "clinging")
	files := shopFiles("shop", "web")
	files["projects/shop/project.yaml"] += "spec: {deletionPolicy: Orphan}\n"
	n.push(files)
	n.ready(n.app("shop", "web"))
	owner := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "clinging"}}
	n.deleteOnPurpose(owner)
	n.gone(owner, namespace("kubeop-clinging-shop"), namespace("kubeop-clinging"))
}

// TestATenantOfTheSameNameInheritsNothing leaves a tenant's namespace behind and creates another tenant of the name.
func TestATenantOfTheSameNameInheritsNothing(t *testing.T) {
	n := newTeam(t, "reused")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	first := &v1alpha1.Tenant{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: "reused"}, first); err != nil {
		t.Fatal(err)
	}
	before := first.DeepCopy()
	first.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	if err := n.admin.Patch(t.Context(), first, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	n.deleteOnPurpose(first)
	n.gone(first)
	n.configMap("shop", "web")

	second := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "reused"}}
	n.create(second)
	message := n.until(second, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.NamespaceTakenReason)
	if !strings.Contains(message, v1alpha1.TenantUIDAnnotation) {
		t.Errorf("the message is %q, want %q in it", message, v1alpha1.TenantUIDAnnotation)
	}
	home := &corev1.Namespace{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: "kubeop-reused"}, home); err != nil {
		t.Fatal(err)
	}
	unmarked := home.DeepCopy()
	delete(unmarked.Annotations, v1alpha1.TenantUIDAnnotation)
	if err := n.admin.Patch(t.Context(), unmarked, client.MergeFrom(home)); err != nil {
		t.Fatal(err)
	}
	n.reconcile(second)
	n.ready(second)
}

// TestAFinalizerThatBlocksARemovalIsNamed deletes a project in which an object has a finalizer that no controller removes.
func TestAFinalizerThatBlocksARemovalIsNamed(t *testing.T) {
	n := newTeam(t, "stuck")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	held := n.configMap("shop", "web")
	before := held.DeepCopy()
	held.Finalizers = []string{"example.com/held"}
	if err := n.admin.Patch(t.Context(), held, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-stuck", Name: "shop"}}
	n.deleteOnPurpose(shop)
	if message, want := n.until(shop, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.DeletingReason), "web"; !strings.Contains(message, want) {
		t.Errorf("the message of the project is %q, want %q in it", message, want)
	}
	app := n.app("shop", "web")
	if message, want := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.DeletingReason), "ConfigMap/web"; !strings.Contains(message, want) {
		t.Errorf("the message of the app is %q, want %q in it", message, want)
	}
	before = n.configMap("shop", "web")
	held = before.DeepCopy()
	held.Finalizers = nil
	if err := n.admin.Patch(t.Context(), held, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	// The repository declares the project, so it is recreated.
	n.eventually(func() error {
		return n.admin.Get(t.Context(), client.ObjectKeyFromObject(n.configMapOf("shop", "web")), &corev1.ConfigMap{})
	})
	n.ready(n.app("shop", "web"))
}

func (n *team) configMapOf(project, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProjectNamespace(n.name, project), Name: name}}
}
