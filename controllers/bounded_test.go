package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/bounded"
)

// TestTheAPIServerHoldsTenantsToTheRulesForAll asks the API server about the cases of package policy, as an account with all rights in the namespace and as
// the deployer: it refuses what kubeop refuses, by the same rule, and allows everything else.
func TestTheAPIServerHoldsTenantsToTheRulesForAll(t *testing.T) {
	n, bot := limited(t, "boundedby")
	deployer := n.as("system:serviceaccount:" + n.namespace() + ":" + v1alpha1.Deployer)
	n.serveRoutes()
	n.reserve(bounded.Host)
	for _, name := range []string{"bulk-for-bounded", "urgent-for-bounded"} {
		n.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1_000})
	}
	n.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "little"}})
	allowed, cases := bounded.Read(t, "../delivery/policy/testdata/cases.yaml", n.namespace())
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.PodSecurity = "baseline" // The level restricted refuses more types of volumes.
		s.Taints, s.IngressAnnotations, s.CSIDrivers = allowed.Taints, allowed.IngressAnnotations, allowed.CSIDrivers
		s.PriorityClasses, s.MaxTerminationGracePeriod = allowed.PriorityClasses, &allowed.MaxTerminationGracePeriod
	})
	// The policy only warns about what it does not list, so that what refuses it is the rule for all tenants.
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "outside"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{
		Action: v1alpha1.WarnAction, ExternalNames: allowed.ExternalNames, ExternalIPs: allowed.ExternalIPs,
	}}}})
	for who, by := range map[string]client.Client{"an account": bot, "the deployer": deployer} {
		for _, c := range cases {
			denied := slices.Contains([]string{"Endpoints", "EndpointSlice", "ReplicationController", "Gateway", "GRPCRoute"}, c.Object.GetKind())
			if c.Unserved || by == deployer && (denied || c.Rule == "ForgedMark" && !strings.Contains(c.Name, " paas.kubeop.io/tenant: ")) {
				continue // The deployer has no rights on these kinds. It sets the labels of kubeop, but names no other tenant.
			}
			n.eventually(func() error {
				if err := n.bounds(by, c); err != nil {
					return fmt.Errorf("%s, by %s: %w", c.Name, who, err)
				}
				return nil
			})
		}
	}
}

// bounds returns how the answer of the API server differs from what a case wants.
func (n *team) bounds(by client.Client, c bounded.Case) error {
	o := c.Object.DeepCopy()
	o.SetNamespace(n.namespace())
	want := c.Rule + ": " + o.GetKind() + "/" + o.GetName() + " " + c.Refused
	err := by.Create(n.t.Context(), o, client.DryRunAll)
	switch {
	case c.Dropped && err == nil:
		if source, found, _ := unstructured.NestedMap(o.Object, "spec", "dataSourceRef"); found {
			return fmt.Errorf("the claim has the source %v", source)
		}
		return nil
	case c.Refused == "" && env.OlderThan(35) && strings.Contains(c.Name, "image:"):
		return nil // The API server drops the volume.
	case c.Refused == "":
		return err
	case err != nil && strings.Contains(err.Error(), " is invalid: "):
		return nil // The API server refuses it anyway, before it asks the policies.
	case err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") || !strings.Contains(err.Error(), want):
		return errors.Join(fmt.Errorf("it is not refused with %q", want), err)
	}
	return nil
}
