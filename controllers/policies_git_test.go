package controllers

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const policyFile = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: %s}\nspec: %s\n"

// limits waits until a policy has these types of Services.
func (n *team) limits(policy string, types ...string) {
	n.t.Helper()
	n.eventually(func() error {
		p := &v1alpha1.Policy{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: policy}, p); err != nil {
			return err
		}
		if p.Spec.Services == nil || strings.Join(p.Spec.Services.Types, " ") != strings.Join(types, " ") {
			return fmt.Errorf("the policy %s has %+v, want the types %v", policy, p.Spec.Services, types)
		}
		return nil
	})
}

// policiesAreDeclared pushes policies and a tenant that names one. None of them limits the other tenants of the cluster.
func (n *team) policiesAreDeclared() {
	n.t.Helper()
	const tenant = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: hosted}\nspec:\n  owners: [{kind: User, name: lead, role: admin}]\n"
	policy := func(name, spec string) string { return fmt.Sprintf(policyFile, name, spec) }
	named := func(name string) *v1alpha1.Policy { return &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	n.push(map[string]string{
		"policies/base.yaml": policy("base", "{default: true}"), "policies/strict.yaml": policy("strict", "{services: {types: [ClusterIP]}}"),
		"policies/bad.yaml": policy("bad", "{services: {types: [Any]}}"), "tenants/hosted/tenant.yaml": tenant + "  policies: [strict]\n",
	})
	n.limits("strict", "ClusterIP")
	n.until(n.repository(), v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason)
	if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: "bad"}, named("bad")); !apierrors.IsNotFound(err) {
		n.t.Errorf("the policy of the bad file is there: %v", err)
	}
	n.eventually(func() error {
		hosted := &v1alpha1.Tenant{}
		err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: "hosted"}, hosted)
		if err == nil && strings.Join(hosted.Spec.Policies, " ") != "strict" {
			err = fmt.Errorf("the tenant is under %v", hosted.Spec.Policies)
		}
		return err
	})

	// Another version, and a policy of which the tenant's file goes on to speak.
	n.push(map[string]string{"policies/strict.yaml": policy("strict", "{services: {types: [ClusterIP, NodePort]}}"), "policies/bad.yaml": "-"})
	n.limits("strict", "ClusterIP", "NodePort")
	n.ready(n.repository())
	n.push(map[string]string{"policies/strict.yaml": "-"})
	n.held("Policy strict: 1 tenant is under it")
	n.limits("strict", "ClusterIP", "NodePort")
	revision := n.push(map[string]string{"policies/other.yaml": policy("other", "{}")})
	if problems := n.problemsOf(revision); !strings.Contains(problems, `tenants/hosted/tenant.yaml:6:14: spec.policies[0]: there is no policy "strict"`) {
		n.t.Errorf("the problems are:\n%s", problems)
	}

	// The tenant names it no more.
	n.push(map[string]string{"tenants/hosted/tenant.yaml": tenant})
	n.gone(named("strict"))
	n.ready(n.repository())
	n.push(map[string]string{"policies": "-"})
	n.gone(named("other"))
	n.confirm(n.held("Policy base: "))
	n.gone(named("base"))
	n.ready(n.repository())
}

// TestATenantCannotDeclareAPolicy in its own repository.
func TestATenantCannotDeclareAPolicy(t *testing.T) {
	n := newTeam(t, "lawmaker")
	files := shopFiles("shop", "web")
	files["policies/lawless.yaml"] = fmt.Sprintf(policyFile, "lawless", "{default: true}")
	revision := n.push(files)
	n.ready(n.app("shop", "web"))
	const want = "policies/lawless.yaml: nothing is read from here; Policies are declared in policies/<policy>.yaml of the platform repository only"
	if problems := n.problemsOf(revision); !strings.Contains(problems, want) {
		t.Errorf("the problems lack %q:\n%s", want, problems)
	}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: "lawless"}, &v1alpha1.Policy{}); !apierrors.IsNotFound(err) {
		t.Errorf("the policy is there: %v", err)
	}
}
