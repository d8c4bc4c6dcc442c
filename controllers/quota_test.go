package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// creatable are the kinds that the chart lets a tenant's accounts create: those of the role kubeop-deployer-base, and those that
// owners may create.
func (n *team) creatable() []schema.GroupResource {
	n.t.Helper()
	var kinds []schema.GroupResource
	for _, name := range []string{"kubeop-deployer-base", "kubeop-view-base", "kubeop-edit-base", "kubeop-admin-base"} {
		role := &rbacv1.ClusterRole{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: name}, role); err != nil {
			n.t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Verbs, "create") {
				continue
			}
			for _, group := range rule.APIGroups {
				for _, r := range rule.Resources {
					if kind := (schema.GroupResource{Group: group, Resource: r}); !strings.Contains(r, "/") && !slices.Contains(kinds, kind) {
						kinds = append(kinds, kind)
					}
				}
			}
		}
	}
	if len(kinds) < 20 {
		n.t.Fatalf("the roles of the chart let only %v be created", kinds)
	}
	return kinds
}

// served returns the kinds that the API server serves. Discovery reports errors of groups that it could not read, such as those of definitions
// that other tests delete meanwhile; no tenant creates those.
func served(t *testing.T) map[schema.GroupResource]bool {
	t.Helper()
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(env.Config).ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	kinds := map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			kinds[schema.GroupResource{Group: gv.Group, Resource: r.Name}] = true
		}
	}
	return kinds
}

// TestEveryKindThatATenantCanCreateIsBounded compares the quotas and policies with the chart's roles: a kind that is added to a role must
// also be counted, and its size and marks checked.
func TestEveryKindThatATenantCanCreateIsBounded(t *testing.T) {
	n := newTeam(t, "bounded")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	quotas := map[string]*corev1.ResourceQuota{}
	for _, namespace := range []string{"kubeop-bounded", "kubeop-bounded-shop"} {
		quota := &corev1.ResourceQuota{}
		n.eventually(func() error {
			if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "kubeop"}, quota); err != nil {
				return err
			}
			if len(quota.Status.Used) != len(quota.Spec.Hard) {
				return fmt.Errorf("Kubernetes counts %[3]d of %[1]d limits of the quota in %[2]s", len(quota.Spec.Hard), namespace, len(quota.Status.Used))
			}
			return nil
		})
		quotas[namespace] = quota
	}
	policies := map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{}
	for _, name := range []string{"kubeop-object-size", "kubeop-forged-mark"} {
		policies[name] = &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Name: name}, policies[name]); err != nil {
			t.Fatal(err)
		}
	}
	serves, counted := served(t), 0
	for _, kind := range n.creatable() {
		if kind.Resource == "events" { // Kubernetes' quotas leave them out: TestTheEventsOfAnAppAreLimited.
			continue
		}
		for name, policy := range policies {
			if !matches(policy, kind) {
				t.Errorf("the policy %s does not match %s", name, kind)
			}
		}
		// Another test defines kinds of the Gateway API meanwhile. A new kind is counted two minutes later (delivery/quota).
		if !serves[kind] || kind.Group == "gateway.networking.k8s.io" {
			continue
		}
		counted++
		for namespace, quota := range quotas {
			if _, ok := quota.Spec.Hard[corev1.ResourceName("count/"+kind.String())]; !ok {
				t.Errorf("the quota of %s does not count %s", namespace, kind)
			}
		}
	}
	if counted < 15 {
		t.Errorf("the API server serves only %d of the kinds", counted)
	}
}

func matches(policy *admissionregistrationv1.ValidatingAdmissionPolicy, kind schema.GroupResource) bool {
	return slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, kind.Group) && slices.Contains(rule.Resources, kind.Resource) && slices.Contains(rule.Operations, admissionregistrationv1.Create)
	})
}

// TestQuotasBoundATenantsPartOfTheStore creates objects as an app's account and as an owner until the quota refuses.
func TestQuotasBoundATenantsPartOfTheStore(t *testing.T) {
	n := newTeam(t, "filling")
	tenant := &v1alpha1.Tenant{}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKey{Name: n.name}, tenant); err != nil {
			return err
		}
		tenant.Spec.Owners = []v1alpha1.Owner{{Kind: rbacv1.UserKind, Name: "filler", Role: "admin"}}
		tenant.Spec.HomeQuota = corev1.ResourceList{"count/secrets": resource.MustParse("3")}
		return n.admin.Update(t.Context(), tenant)
	})
	const rights = "{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create]}"
	files := shopFiles("shop")
	files["projects/shop/project.yaml"] += "spec: {quota: {count/leases.coordination.k8s.io: 4, count/roles.rbac.authorization.k8s.io: 3}}\n"
	files["projects/shop/apps/bad/app.yaml"] = rawApp(
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: bot}, rules: ["+rights+"]}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: bot}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bot}, "+
			"subjects: [{kind: ServiceAccount, name: bot, namespace: kubeop-filling-shop}]}",
	)["app.yaml"]
	n.push(files)
	n.ready(n.app("shop", "bad"))
	bot, filler := n.as("system:serviceaccount:kubeop-filling-shop:bot"), n.as("filler")
	for name, c := range map[string]struct {
		by                client.Client
		namespace, object string
		most              int
	}{
		"leases":            {bot, "kubeop-filling-shop", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {generateName: x-}}", 4},
		"roles":             {bot, "kubeop-filling-shop", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {generateName: x-}}", 2},
		"Secrets in a home": {filler, "kubeop-filling", "{apiVersion: v1, kind: Secret, metadata: {generateName: x-}}", 3},
	} {
		t.Run(name, func(t *testing.T) {
			made, refused := 0, ""
			n.eventually(func() error {
				for refused == "" {
					err := c.by.Create(t.Context(), n.object(c.namespace, c.object))
					switch {
					case err == nil:
						made++
					case strings.Contains(err.Error(), "exceeded quota: kubeop"):
						refused = err.Error()
					default:
						return err
					}
					if made > c.most {
						return fmt.Errorf("%d were made", made)
					}
				}
				return nil
			})
			if made != c.most {
				t.Errorf("%d were made, want %d: %s", made, c.most, refused)
			}
		})
	}
}
