package controllers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestARoleWithoutOwnersHasNoBinding changes the owners of a tenant and checks the bindings in its home and its project.
func TestARoleWithoutOwnersHasNoBinding(t *testing.T) {
	n := newTeam(t, "handed")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	n.admits()

	n.own(v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "ann", Role: "admin"}, v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "bob"})
	n.admits("kubeop-admin: ann", "kubeop-view: bob")

	n.own(v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "bob", Role: "edit"})
	n.admits("kubeop-edit: bob")

	n.own()
	n.admits()
}

// own sets the owners of the tenant.
func (n *team) own(owners ...v1alpha1.Owner) {
	n.t.Helper()
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Owners = owners })
}

// administered gives the tenant an administrator, and waits for the binding kubeop-admin in its project shop.
func (n *team) administered() {
	n.t.Helper()
	n.own(v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "ann", Role: "admin"})
	n.eventually(func() error {
		return n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "kubeop-admin"}, &rbacv1.RoleBinding{})
	})
}

// admits waits until these are the owners' bindings in the home and in project shop: "<name>: <subject>", sorted.
func (n *team) admits(want ...string) {
	n.t.Helper()
	for _, namespace := range []string{v1alpha1.HomeNamespace(n.name), v1alpha1.ProjectNamespace(n.name, "shop")} {
		n.eventually(func() error {
			list := &rbacv1.RoleBindingList{}
			if err := n.admin.List(n.t.Context(), list, client.InNamespace(namespace)); err != nil {
				return err
			}
			var got []string
			for _, b := range list.Items {
				for _, s := range b.Subjects {
					got = append(got, b.Name+": "+s.Name)
				}
				if len(b.Subjects) == 0 {
					got = append(got, b.Name)
				}
			}
			got = slices.DeleteFunc(got, func(b string) bool { return b == "kubeop-deployer: kubeop-deployer" })
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				return fmt.Errorf("bindings of %s (-want +got):\n%s", namespace, diff)
			}
			return nil
		})
	}
}
