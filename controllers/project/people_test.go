package project

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// ofPeople returns what is there for kubeconfigs: accounts, and "binding: role of subjects".
func (b *fixture) ofPeople() (all []string) {
	b.t.Helper()
	accounts, bindings := &corev1.ServiceAccountList{}, &rbacv1.RoleBindingList{}
	for _, list := range []client.ObjectList{accounts, bindings} {
		if err := b.api.List(b.t.Context(), list, client.InNamespace(shopNamespace)); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, account := range accounts.Items {
		if account.Name != v1alpha1.Deployer {
			all = append(all, account.Name)
		}
		if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
			b.t.Errorf("the token of %s is mounted", account.Name)
		}
	}
	for _, binding := range bindings.Items {
		if strings.Contains(binding.Name, "access") || strings.Contains(binding.Name, "kubeconfigs") {
			all = append(all, binding.Name+": "+binding.RoleRef.Name+" of "+binding.Subjects[0].Namespace+"/"+binding.Subjects[0].Name)
		}
	}
	slices.Sort(all)
	return all
}

// TestPeopleHaveAccountsWhileTheManagerGivesKubeconfigs, and none before and afterwards, or while a binding of an app would give them more than their role.
func TestPeopleHaveAccountsWhileTheManagerGivesKubeconfigs(t *testing.T) {
	b := newFixture(t, acme(), namespaceOf("uid-1"), shop())
	reconciled := func() string {
		t.Helper()
		s := b.with(shop(), acme())
		b.get(s.project)
		s = b.with(s.project, acme())
		if err := b.grant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		s.Record()
		if err := b.api.Status().Update(t.Context(), s.project); err != nil {
			t.Fatal(err)
		}
		return s.Summary()
	}
	has := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, b.ofPeople()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	reconciled()
	has()

	wide := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "wide"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "x"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "ann", APIGroup: rbacv1.GroupName}, {Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + shopNamespace, APIGroup: rbacv1.GroupName}},
	}
	if err := b.api.Create(t.Context(), wide); err != nil {
		t.Fatal(err)
	}
	b.Manager = types.NamespacedName{Namespace: "kubeop-system", Name: "kubeop-manager"}
	if says := reconciled(); !strings.Contains(says, "RoleBinding wide gives rights to all service accounts of the namespace") {
		t.Errorf("it says %q", says)
	}
	has()

	wide.Subjects = wide.Subjects[:1]
	if err := b.api.Update(t.Context(), wide); err != nil {
		t.Fatal(err)
	}
	if says := reconciled(); strings.Contains(says, "kubeconfig") {
		t.Errorf("it says %q", says)
	}
	all := []string{
		"kubeop-access-admin", "kubeop-access-admin: kubeop-admin of kubeop-acme-shop/kubeop-access-admin", "kubeop-access-edit", "kubeop-access-edit: kubeop-edit of kubeop-acme-shop/kubeop-access-edit",
		"kubeop-access-view", "kubeop-access-view: kubeop-view of kubeop-acme-shop/kubeop-access-view", "kubeop-manager-kubeconfigs: kubeop-manager-kubeconfigs of kubeop-system/kubeop-manager",
	}
	has(all...)

	b.fault = func(verb string, o any, _ string) error {
		if _, lists := o.(*rbacv1.RoleBindingList); lists && verb == "list" {
			return errAway
		}
		return nil
	}
	reconciled() // Nothing is listed once they are there.
	b.fault = func(string, any, string) error { return nil }
	has(all...)

	b.Manager.Name = ""
	s := b.with(shop(), acme())
	b.get(s.project)
	s = b.with(s.project, acme())
	if _ = b.revoke(t.Context(), s); s.revoked != nil { // Whatever becomes of later steps.
		t.Error(s.revoked)
	}
	has()

	b.Manager.Name = "kubeop-manager"
	reconciled()
	has(all...)
	if err := b.api.Delete(t.Context(), acme()); err != nil {
		t.Fatal(err)
	}
	s = b.with(shop(), acme())
	b.get(s.project)
	s = b.with(s.project, acme())
	s.project.DeletionTimestamp = new(metav1.Now())
	if err := b.retract(t.Context(), s); err != nil { // Although the tenant is gone.
		t.Error(err)
	}
	has()
}

// TestAppsAreDeliveredAlthoughPeopleGetNoAccounts, as where the quota has no room for these.
func TestAppsAreDeliveredAlthoughPeopleGetNoAccounts(t *testing.T) {
	b := newFixture(t, acme(), namespaceOf("uid-1"), shop())
	b.Manager = types.NamespacedName{Namespace: "kubeop-system", Name: "kubeop-manager"}
	b.fault = func(_ string, _ any, data string) error {
		if strings.Contains(data, "kubeop-access-") {
			return apierrors.NewForbidden(corev1.Resource("serviceaccounts"), "kubeop-access-view", errors.New("exceeded quota"))
		}
		return nil
	}
	s := b.with(shop(), acme())
	if got := steptest.Outcome(t, b.grant(t.Context(), s)); !strings.HasPrefix(got, "later steps run; ") || !strings.Contains(got, "kubeconfigs") {
		t.Errorf("it ends with %q", got)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: v1alpha1.Deployer}}
	b.get(account)
}
