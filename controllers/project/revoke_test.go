package project

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// owned has a tenant with these owners, all of the role admin.
func owned(names ...string) func(*v1alpha1.Tenant) {
	return func(a *v1alpha1.Tenant) {
		a.Spec.Owners = nil
		for _, name := range names {
			a.Spec.Owners = append(a.Spec.Owners, v1alpha1.Owner{Kind: rbacv1.UserKind, Name: name, Role: "admin"})
		}
	}
}

// admins returns who has the role admin in the project, nil where there is no binding.
func (b *fixture) admins() (names []string) {
	b.t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "kubeop-admin"}}
	b.get(binding)
	for _, subject := range binding.Subjects {
		names = append(names, subject.Name)
	}
	return names
}

// TestAccessIsRevokedWhileAGuardFails, and nobody gets anything meanwhile.
func TestAccessIsRevokedWhileAGuardFails(t *testing.T) {
	hub := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "hub"}, Spec: v1alpha1.RegistrySpec{Host: "registry.example.com", Tenants: []string{"acme"}, SecretRef: v1alpha1.LocalSecretReference{Name: "hub-pull"}}}
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "hub-pull"}, Data: map[string][]byte{"username": []byte("ann"), "password": []byte("hunter2")}}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: v1alpha1.PullSecretPrefix + "hub"}}
	tenant := acme(owned("ann", "mallory"))
	b := newFixture(t, tenant, hub, credentials, namespaceOf("uid-1"), shop())
	if err := b.onLooks().Start(t.Context(), newWoken()); err != nil {
		t.Fatal(err)
	}
	reconciled := func() *v1alpha1.Project {
		t.Helper()
		project := shop()
		b.get(project)
		if _, err := b.Reconcile(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		b.get(project)
		return project
	}
	if reconciled(); !slices.Equal(b.admins(), []string{"ann", "mallory"}) || !b.get(copied) {
		t.Fatalf("at first the admins are %v, and the Secret is there: %t", b.admins(), b.get(copied))
	}
	changed := func(owners ...string) {
		t.Helper()
		b.get(tenant)
		owned(owners...)(tenant)
		tenant.Spec.Policies = []string{"absent"}
		if err := b.api.Update(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	changed("ann", "bob")
	b.get(hub)
	hub.Spec.Tenants = nil
	if err := b.api.Update(t.Context(), hub); err != nil {
		t.Fatal(err)
	}
	project := reconciled()
	if diff := cmp.Diff([]string{"ann"}, b.admins()); diff != "" || b.get(copied) || len(project.Status.PullSecrets) > 0 {
		t.Errorf("the Secret is there: %t, the status has %v; admins (-want +got):\n%s", b.get(copied), project.Status.PullSecrets, diff)
	}
	if got := conditions.GetReason(project, v1alpha1.ReadyCondition); got != v1alpha1.PolicyNotFoundReason {
		t.Errorf("Ready has the reason %s", got)
	}
	if got := conditions.GetMessage(project, v1alpha1.AccessReadyCondition); got != "waits for GuardrailsReady" {
		t.Errorf("of access it says %q", got)
	}
	b.fault = func(verb string, o any, _ string) error {
		if binding, is := o.(*rbacv1.RoleBinding); is && verb == "get" && binding.Name == "" {
			return errAway
		}
		return nil
	}
	changed("bob")
	project = reconciled()
	if got := conditions.GetMessage(project, v1alpha1.AccessReadyCondition); got != "taking away access by RoleBinding/kubeop-admin: "+errAway.Error() {
		t.Errorf("of access that could not be taken away it says %q", got)
	}
	s := b.with(project, tenant)
	if err := b.revoke(t.Context(), s); err == nil || s.Again() != takesEffect {
		t.Errorf("%v, again after %s", err, s.Again())
	}
	b.fault = func(string, any, string) error { return nil }
	if reconciled(); b.admins() != nil {
		t.Errorf("of no owner that is left, admins are %v", b.admins())
	}
	tenant.Spec.Policies = nil
	if err := b.api.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if project = reconciled(); !slices.Equal(b.admins(), []string{"bob"}) || !conditions.IsTrue(project, v1alpha1.ReadyCondition) {
		t.Errorf("in the end the admins are %v: %s", b.admins(), conditions.GetMessage(project, v1alpha1.ReadyCondition))
	}
}

// TestAFormerOwnerLosesAccessWhileAProjectIsRemoved: finalizers may hold its apps as long as the tenant likes.
func TestAFormerOwnerLosesAccessWhileAProjectIsRemoved(t *testing.T) {
	tenant := acme(owned("ann", "mallory"))
	b := newFixture(t, tenant, appOf(shopNamespace, "web"))
	s := b.with(shop(deletedProject), tenant)
	if err := b.grant(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	owned("ann")(tenant)
	if err := b.api.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if got := steptest.Outcome(t, b.removeApps(t.Context(), b.again(s))); !strings.HasPrefix(got, "waits Deleting: ") || !slices.Equal(b.admins(), []string{"ann"}) {
		t.Errorf("%q, and the admins are %v", got, b.admins())
	}
}

// TestInvalidValuesOfATenantStopNoNarrowing: the project has amounts that no quota can have, and limits that contradict each other. What administrators
// allow holds.
func TestInvalidValuesOfATenantStopNoNarrowing(t *testing.T) {
	b := newFixture(t)
	b.serveTier()
	b.fault = func(verb string, o any, data string) error {
		if verb != "get" && strings.Contains(data, `"LimitRange"`) && strings.Contains(data, `"cpu":"9"`) {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "LimitRange"}, guardName, nil)
		}
		return nil
	}
	project := shop(func(p *v1alpha1.Project) {
		p.Spec.Quota = corev1.ResourceList{"pods": resource.MustParse("-1"), "services.nodeports": resource.MustParse("0.5")}
		p.Spec.Limits.DefaultRequest = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}
	})
	tenant := acme(func(a *v1alpha1.Tenant) {
		a.Spec.Quota = corev1.ResourceList{"requests.cpu": resource.MustParse("1"), "services.nodeports": resource.MustParse("3")}
	})
	s := b.with(project, tenant)
	const want = "later steps run; stopped ApplyFailed: spec.limits of project.yaml has no effect until it is corrected: "
	if got := steptest.Outcome(t, b.guard(t.Context(), s)); !strings.HasPrefix(got, want) || !strings.Contains(got, "spec.quota[pods] of project.yaml: -1 is negative") {
		t.Errorf("got %q", got)
	}
	meta := metav1.ObjectMeta{Namespace: shopNamespace, Name: guardName}
	counted, limits := &corev1.ResourceQuota{ObjectMeta: meta}, &corev1.LimitRange{ObjectMeta: meta}
	if !b.get(counted) || !b.get(limits) || !b.get(everything("kubeop")) || b.clusterPolicy() == nil {
		t.Fatal("not all is there")
	}
	hard := amounts(counted.Spec.Hard)
	if hard["pods"] != "0" || hard["services.nodeports"] != "1" || hard["requests.cpu"] != "1" {
		t.Errorf("the quota is %v", hard)
	}
	if got := amounts(limits.Spec.Limits[0].DefaultRequest)["cpu"]; got != "50m" {
		t.Errorf("the default request of processors is %s", got)
	}
}
