package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// hold adds a finalizer that no controller removes.
func (n *team) hold(o client.Object) {
	n.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.com/held"]}}`))
	if err := n.admin.Patch(n.t.Context(), o, patch); err != nil {
		n.t.Fatal(err)
	}
}

// waitsFor waits until the message about what an object waits for contains all of want.
func (n *team) waitsFor(o step.Object, want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		message := n.until(o, v1alpha1.ReadyCondition, metav1.ConditionUnknown, "")
		for _, part := range want {
			if !strings.Contains(message, part) {
				return fmt.Errorf("the message does not contain %q: %s", part, message)
			}
		}
		return nil
	})
}

// leave takes a project out of Git, and keeps another one: a commit without any project would be held.
func (n *team) leave(project string) {
	n.t.Helper()
	files := shopFiles("stays", "a", "b", "c")
	n.push(files)
	n.ready(n.app("stays", "a"), n.app("stays", "b"), n.app("stays", "c"))
	files["projects/"+project] = "-"
	n.push(files)
}

// force allows, as an administrator would, to end a removal that is blocked.
func (n *team) force(o client.Object) {
	n.t.Helper()
	if err := n.admin.Patch(n.t.Context(), o, annotated(v1alpha1.ForceRemovalAnnotation, o.GetName())); err != nil {
		n.t.Fatal(err)
	}
}

// hasEvent waits for an event that contains all of want; its object may be gone.
func (n *team) hasEvent(reason string, want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		list := &eventsv1.EventList{}
		if err := n.admin.List(n.t.Context(), list); err != nil {
			return err
		}
		var notes []string
	next:
		for _, e := range list.Items {
			if e.Reason != reason || !strings.Contains(e.Regarding.Namespace+" "+e.Regarding.Name, n.name) {
				continue
			}
			notes = append(notes, e.Note)
			for _, part := range want {
				if !strings.Contains(e.Note, part) {
					continue next
				}
			}
			return nil
		}
		return fmt.Errorf("no event %s has %q: %q", reason, want, notes)
	})
}

// TestABlockedAppRemovalCanBeForced deletes two apps, each with an object whose finalizer no controller removes.
func TestABlockedAppRemovalCanBeForced(t *testing.T) {
	n := newTeam(t, "clamped")
	n.push(withRelease(shopFiles("shop", "web")))
	n.ready(n.app("shop", "web"), n.app("shop", "released"))
	for _, name := range []string{"web", "released"} {
		config, app := n.configMap("shop", name), n.app("shop", name)
		n.hold(config)
		n.push(map[string]string{"projects/shop/apps/" + name: "-"})
		n.waitsFor(app, "ConfigMap/"+name+", which the finalizer example.com/held holds",
			"kubectl annotate app "+name+" -n kubeop-clamped-shop --overwrite paas.kubeop.io/force-removal="+name)
		// An annotation with another value forces nothing.
		if err := n.admin.Patch(t.Context(), app, annotated(v1alpha1.ForceRemovalAnnotation, "yes")); err != nil {
			t.Fatal(err)
		}
		n.reconcile(app)
		n.waitsFor(app, "example.com/held")
		n.force(app)
		n.gone(app, config)
		n.hasEvent(v1alpha1.RemovalForcedReason, "example.com/held from ConfigMap/"+name)
	}
}

// TestABlockedProjectRemovalCanBeForced deletes a project whose namespace has an object of an account with a finalizer that no controller removes.
func TestABlockedProjectRemovalCanBeForced(t *testing.T) {
	n, bot := limited(t, "clutched")
	var held []client.Object
	for _, text := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [example.com/held]}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: x, finalizers: [example.com/held]}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x, finalizers: [example.com/held]}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: x, finalizers: [example.com/held]}, spec: {" + podSpec + "}}",
	} {
		object := n.object(n.namespace(), text)
		n.passes(func() error { return bot.Create(t.Context(), object) })
		held = append(held, object)
	}
	// A binding is not waited for: it gives its rights for as long as it exists.
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "bot"}}
	n.hold(binding)
	shop := n.project("shop")
	n.leave("shop")
	n.gone(binding)
	n.waitsFor(shop, "ConfigMap/x, which the finalizer example.com/held holds", "Secret/x, which", "Role/x, which", "Pod/x, which",
		"kubectl annotate project shop -n kubeop-clutched --overwrite paas.kubeop.io/force-removal=shop")
	ns := &corev1.Namespace{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: n.namespace()}, ns); err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace is being deleted, and with it the rights of the accounts that could remove the finalizer: %v", err)
	}
	n.force(shop)
	n.gone(append(held, shop, namespace(n.namespace()))...)
	n.hasEvent(v1alpha1.RemovalForcedReason, "example.com/held from ConfigMap/x", "from Secret/x")
}

// TestABlockedTenantRemovalCanBeForced sets the annotation once, on the Tenant, for everything of it.
func TestABlockedTenantRemovalCanBeForced(t *testing.T) {
	n, bot := limited(t, "clasped")
	n.hold(n.configMap("shop", "web"))
	n.passes(func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [example.com/held]}}"))
	})
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	n.deleteOnPurpose(tenant)
	n.waitsFor(n.app("shop", "web"), "ConfigMap/web, which the finalizer example.com/held holds")
	n.waitsFor(tenant, "shop")
	n.force(tenant)
	n.gone(n.app("shop", "web"), n.project("shop"), tenant, namespace(n.namespace()), namespace("kubeop-clasped"))
}

// TestABlockedPodDeletionCanBeForced deletes a project with a pod that has a grace period of a thousand million seconds.
func TestABlockedPodDeletionCanBeForced(t *testing.T) {
	n := newTeam(t, "endless")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.MaxTerminationGracePeriod = &metav1.Duration{Duration: 30e9} })
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	n.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "endless"}}) // Kubernetes deletes pods of nodes that do not exist.
	pod := n.object(n.namespace(), "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {nodeName: endless, terminationGracePeriodSeconds: 1000000000, "+podSpec+"}}")
	// The pod is created past the policy, as if it were older.
	if err := n.masterful(operatorAccount).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	n.leave("shop")
	n.waitsFor(n.project("shop"), "waits for what would hold the deletion of namespace kubeop-endless-shop: Pod/x, which may take until ")
	n.gone(pod, n.project("shop"), namespace(n.namespace()))
	n.hasEvent(v1alpha1.RemovalForcedReason, "pods were deleted without waiting for them, as shop was deleted more than 30s ago: x")
}
