package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/pvc"
	"github.com/kubeop/kubeop/internal/testenv"
)

// bind creates a volume for a claim of the shop.
func (n *team) bind(name string) {
	n.t.Helper()
	n.create(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: n.name + "-" + name}, Spec: pvOf(n.namespace(), name)})
}

var oneMi = resource.MustParse("1Mi")

// claim returns a claim in the shop.
func (n *team) claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: name}}
}

// boundClaim waits until a claim of the shop is bound.
func (n *team) boundClaim(name string) *corev1.PersistentVolumeClaim {
	n.t.Helper()
	c := n.claim(name)
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if c.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is %s, want %s", name, c.Status.Phase, corev1.ClaimBound)
		}
		return nil
	})
	return c
}

// byHand creates a claim that no app declares, as a StatefulSet or a person would. It may name its volume.
func (n *team) byHand(name string, volume ...string) *corev1.PersistentVolumeClaim {
	n.t.Helper()
	class := ""
	c := n.claim(name)
	c.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: oneMi}},
	}
	c.Spec.VolumeName = strings.Join(volume, "")
	n.create(c)
	return c
}

// uid reads an object's UID.
func (n *team) uid(o client.Object) types.UID {
	n.t.Helper()
	n.there(o)
	return o.GetUID()
}

// tenant returns the team's Tenant.
func (n *team) tenant() *v1alpha1.Tenant {
	return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
}

// change patches the current version of an object, because the operator may be writing it, too.
func change[T client.Object](n *team, o T, edit func(T)) T {
	n.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := o.DeepCopyObject().(client.Object)
		edit(o)
		return n.admin.Patch(n.t.Context(), o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return o
}

// data creates a volume, and returns the files of a shop with the app web and its claim data, and another project.
func (n *team) data() map[string]string {
	n.bind("data")
	files := n.shop("web", claim, plain("settings"))
	for k, v := range shopFiles("other", "a", "b", "c") {
		files[k] = v
	}
	return files
}

// retained waits until the shop's namespace was retained with these claims, and checks its annotations.
func (n *team) retained(names ...string) *corev1.Namespace {
	n.t.Helper()
	ns := namespace(n.namespace())
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
			return err
		}
		if ns.Labels[v1alpha1.RetainedLabel] != "true" || ns.DeletionTimestamp != nil {
			return fmt.Errorf("namespace %s is labelled %v", ns.Name, ns.Labels)
		}
		return nil
	})
	for _, name := range names {
		n.there(n.claim(name))
		if !strings.Contains(ns.Annotations[v1alpha1.RetainedClaimsAnnotation], name+" (1Mi)") {
			n.t.Errorf("the namespace does not name claim %s: %v", name, ns.Annotations)
		}
	}
	return ns
}

// locked checks that nobody has access to the shop's namespace and that its policies and quotas remain.
func (n *team) locked() {
	n.t.Helper()
	in := client.InNamespace(n.namespace())
	bindings, accounts := &rbacv1.RoleBindingList{}, &corev1.ServiceAccount{}
	if err := n.admin.List(n.t.Context(), bindings, in); err != nil || len(bindings.Items) > 0 {
		n.t.Errorf("the role bindings are %v, want none; error %v", bindings.Items, err)
	}
	if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.Deployer}, accounts); err == nil {
		n.t.Error("the ServiceAccount of the deployer still exists")
	}
	policies, quotas := &networkingv1.NetworkPolicyList{}, &corev1.ResourceQuotaList{}
	if err := n.admin.List(n.t.Context(), policies, in); err != nil || len(policies.Items) != 1 {
		n.t.Errorf("the number of network policies is %v, want 1; error %v", len(policies.Items), err)
	}
	if err := n.admin.List(n.t.Context(), quotas, in); err != nil || len(quotas.Items) != 3 {
		n.t.Errorf("the number of quotas is %v, want 3; error %v", len(quotas.Items), err)
	}
}

// TestAReturningProjectAdoptsItsRetainedNamespace removes a project with data from Git and adds it again.
func TestAReturningProjectAdoptsItsRetainedNamespace(t *testing.T) {
	n := newTeam(t, "dataproject")
	n.applied("web", n.push(n.data()))
	n.byHand("stray")
	n.bind("stray")
	was, stray, space := n.boundClaim("data").UID, n.boundClaim("stray").UID, n.uid(namespace(n.namespace()))
	n.byHand("pending")

	n.push(map[string]string{"projects/shop": "-"})
	n.confirm(n.held("PersistentVolumeClaim kubeop-dataproject-shop/data: 1Mi, stays", "PersistentVolumeClaim kubeop-dataproject-shop/stray"))
	n.gone(n.project("shop"), n.app("shop", "web"), n.configMapOf("shop", "settings"))
	ns := n.retained("data", "stray")
	n.gone(n.claim("pending"))
	n.locked()
	if because := ns.Annotations[v1alpha1.RetainedBecauseAnnotation]; !strings.Contains(because, "Project kubeop-dataproject/shop was deleted") ||
		!strings.Contains(because, "kubectl delete pvc -n kubeop-dataproject-shop data stray") || ns.Annotations[v1alpha1.RetainedAtAnnotation] == "" {
		t.Errorf("the annotations of the namespace are %v", ns.Annotations)
	}
	n.eventually(func() error {
		events := strings.Join(n.events(n.project("shop"), v1alpha1.NamespaceRetainedReason), "\n")
		if !strings.Contains(events, "data (1Mi), stray (1Mi)") || !strings.Contains(events, "kubectl delete pvc") {
			return fmt.Errorf("events: %s", events)
		}
		return nil
	})

	n.applied("web", n.push(n.shop("web", claim, plain("settings"))))
	if n.uid(n.claim("data")) != was || n.uid(n.claim("stray")) != stray || n.uid(ns) != space {
		t.Error("the namespace or a claim was recreated")
	}
	if ns.Labels[v1alpha1.RetainedLabel] != "" || ns.Annotations[v1alpha1.RetainedBecauseAnnotation] != "" {
		t.Errorf("the namespace is still marked as retained: %v %v", ns.Labels, ns.Annotations)
	}
	n.ready(n.project("shop"))
	n.gone(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "kubeop-closed"}})
	n.byHand("new")
}

// TestOnlyConfirmedClaimsAreDeletedWithAProject deletes a project with claimDeletionPolicy Delete after some of its claims were confirmed.
func TestOnlyConfirmedClaimsAreDeletedWithAProject(t *testing.T) {
	for name, c := range map[string]struct {
		// confirmed are the claims of an earlier confirmation while this commit is not confirmed; nil if this commit is.
		confirmed, stays []string
	}{
		"someconfirmed": {[]string{"data"}, []string{"stray"}},
		"allconfirmed":  {nil, nil},
		"noneconfirmed": {[]string{}, []string{"data", "stray"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTeam(t, name)
			files := n.data()
			files["projects/shop/project.yaml"] += "spec: {claimDeletionPolicy: Delete}\n"
			n.applied("web", n.push(files))
			n.byHand("stray")
			n.bind("stray")
			uids := map[string]string{"data": string(n.boundClaim("data").UID), "stray": string(n.boundClaim("stray").UID)}
			var listed []string
			for _, name := range c.confirmed {
				listed = append(listed, uids[name])
			}
			n.push(map[string]string{"projects/shop": "-"})
			token := n.held("PersistentVolumeClaim kubeop-"+name+"-shop/data: 1Mi, is deleted with its data", "PersistentVolumeClaim kubeop-"+name+"-shop/stray")
			if c.confirmed == nil {
				n.confirm(token)
			} else {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ConfirmedClaimsAnnotation, pvc.Confirm(time.Now(), listed))
				if err := n.self.Patch(t.Context(), n.project("shop"), client.RawPatch(types.MergePatchType, patch)); err != nil {
					t.Fatal(err)
				}
				if err := testenv.DeleteOnPurpose(t.Context(), n.admin, n.project("shop"), false); err != nil {
					t.Fatal(err)
				}
			}
			n.gone(n.project("shop"))
			if len(c.stays) == 0 {
				n.gone(namespace(n.namespace()))
				return
			}
			n.retained(c.stays...)
			for _, name := range c.confirmed {
				n.gone(n.claim(name))
			}
		})
	}
}

// TestClaimsAreDeletedBeforeTheirNamespace removes a project with an unbound claim. Kubernetes empties a namespace some seconds
// after its deletion; a claim that became bound in that time would be deleted unchecked.
func TestClaimsAreDeletedBeforeTheirNamespace(t *testing.T) {
	n := newTeam(t, "claimsfirst")
	files := n.shop("web", plain("settings"))
	files["projects/other/project.yaml"] = fmt.Sprintf(projectFile, "other")
	n.applied("web", n.push(files))
	n.byHand("pending")
	const held = "example.com/held"
	change(n, n.claim("pending"), func(c *corev1.PersistentVolumeClaim) { c.Finalizers = append(c.Finalizers, held) })
	n.push(map[string]string{"projects/shop": "-"})
	n.waitsFor(n.project("shop"), "PersistentVolumeClaim/pending, which the finalizer ", held)
	ns, claim := namespace(n.namespace()), n.claim("pending")
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.DeletionTimestamp != nil {
		t.Fatalf("the namespace is being deleted before the claim is gone, error %v", err)
	}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil || claim.DeletionTimestamp == nil {
		t.Fatalf("the unbound claim was not deleted first, error %v", err)
	}
	change(n, n.claim("pending"), func(c *corev1.PersistentVolumeClaim) {
		c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == held })
	})
	n.gone(namespace(n.namespace()))
}

// TestClaimsAreDeletedWhereNothingWasDelivered removes a project whose guardrails are not known, so that it never got a deployer.
func TestClaimsAreDeletedWhereNothingWasDelivered(t *testing.T) {
	n := newTeam(t, "undelivered")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = []string{"undelivered-absent"} })
	files := map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")}
	files["projects/other/project.yaml"] = fmt.Sprintf(projectFile, "other")
	n.push(files)
	n.until(n.project("shop"), v1alpha1.GuardrailsReadyCondition, metav1.ConditionFalse, v1alpha1.PolicyNotFoundReason)
	n.byHand("pending")
	n.push(map[string]string{"projects/shop": "-"})
	n.gone(n.project("shop"), namespace(n.namespace()))
}

// TestARecreatedTenantAdoptsItsData deletes a tenant with data and creates it again from the same file; then another tenant takes the name.
func TestARecreatedTenantAdoptsItsData(t *testing.T) {
	n := newTeam(t, "comesback")
	change(n, n.tenant(), func(o *v1alpha1.Tenant) {
		o.Spec.Owners = []v1alpha1.Owner{{Kind: "User", Name: "lead", Role: "admin"}}
	})
	n.applied("web", n.push(n.data()))
	was, space := n.boundClaim("data").UID, n.uid(namespace(n.namespace()))
	spec := n.deleteTenant()
	n.retained("data")
	n.locked()

	other := n.tenant()
	other.Spec = *spec.DeepCopy()
	other.Spec.Repository.URL = strings.Replace(spec.Repository.URL, "comesback", "elsewhere", 1)
	n.create(other)
	n.ready(other)
	shop := n.project("shop")
	shop.Labels = map[string]string{v1alpha1.TenantLabel: n.name, v1alpha1.ProjectLabel: "shop"}
	n.create(shop)
	message := n.until(shop, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.NamespaceTakenReason)
	if !strings.Contains(message, "another name") || !strings.Contains(message, v1alpha1.TenantUIDAnnotation) {
		t.Errorf("the message does not name both solutions: %s", message)
	}
	n.locked()
	n.deleteTenant()
	n.gone(shop)
	n.retained("data") // The refused tenant deletes nothing.

	again := n.tenant()
	again.Spec = spec
	n.create(again)
	n.ready(again, n.app("shop", "web"))
	if n.uid(n.claim("data")) != was || n.uid(namespace(n.namespace())) != space {
		t.Error("the namespace or the claim was recreated")
	}
	n.eventually(func() error {
		if events := n.events(n.project("shop"), v1alpha1.NamespaceAdoptedReason); len(events) == 0 {
			return fmt.Errorf("no event reports the adopted namespace")
		}
		return nil
	})
}

// deleteTenant deletes the tenant and returns its spec.
func (n *team) deleteTenant() v1alpha1.TenantSpec {
	n.t.Helper()
	tenant := n.tenant()
	n.there(tenant)
	n.deleteOnPurpose(tenant)
	n.gone(tenant, namespace(v1alpha1.HomeNamespace(n.name)))
	return tenant.Spec
}

// TestObjectsWithoutStatusAreAdoptedUnchanged removes Tenant, Project and App without their finalizers, as a restore from backup or
// a deleted CustomResourceDefinition would, and creates them again.
func TestObjectsWithoutStatusAreAdoptedUnchanged(t *testing.T) {
	n := newTeam(t, "restored")
	n.applied("web", n.push(n.data()))
	n.administered()
	n.boundClaim("data")
	kept := []client.Object{
		namespace(v1alpha1.HomeNamespace(n.name)), namespace(n.namespace()), n.claim("data"), n.configMapOf("shop", "settings"),
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "kubeop"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "kubeop-admin"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: v1alpha1.Deployer}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-restored"}},
	}
	uids := map[client.Object]types.UID{}
	for _, o := range kept {
		uids[o] = n.uid(o)
	}
	tenant, project, app := n.tenant(), n.project("shop"), n.app("shop", "web")
	n.there(tenant, project, app)
	spec := tenant.Spec
	change(n, tenant, func(o *v1alpha1.Tenant) { o.Spec.Suspend = true }) // A suspended object is released unchanged.
	n.deleteOnPurpose(tenant)
	n.gone(tenant)
	if err := n.admin.Delete(t.Context(), n.repository()); err != nil {
		t.Fatal(err)
	}
	n.gone(n.repository())
	for _, o := range []client.Object{app, project} {
		n.eventually(func() error { return n.vanish(o) })
	}
	spec.Suspend = false
	again := n.tenant()
	again.Spec = spec
	n.create(again)
	n.ready(again, n.project("shop"), n.app("shop", "web"))
	for _, o := range kept {
		if n.uid(o) != uids[o] {
			t.Errorf("%T %s was recreated", o, o.GetName())
		}
	}
}

// vanish deletes an object without the work of its finalizer.
func (n *team) vanish(o client.Object) error {
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		return client.IgnoreNotFound(err)
	}
	switch o := o.(type) { // Suspended or orphaned, so that its controller does nothing meanwhile.
	case *v1alpha1.App:
		o.Spec.Suspend = true
	case *v1alpha1.Project:
		o.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	}
	if err := n.admin.Update(n.t.Context(), o); err != nil {
		return err
	}
	if err := testenv.DeleteOnPurpose(n.t.Context(), n.admin, o, false); err != nil {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("%T %s is being deleted", o, o.GetName())
}
