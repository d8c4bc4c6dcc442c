package project

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// connect finds the connections of the project, and what NetworkPolicies of its apps may open. Once a project had
// such policies, that stays known: some may be left, and must not open what is refused later. While the connections are not known, as without one of the
// policies, these may open what they could before.
func (r *Reconciler) connect(ctx context.Context, s *scope) error {
	s.network.allowed = s.rules.opened
	if missing := s.rules.missing; len(missing) > 0 {
		return step.Stop(v1alpha1.PolicyNotFoundReason, fmt.Errorf("spec.policies of tenant %s names what does not exist: %s. Add policies/<policy>.yaml to the platform "+
			"repository, or take the name out of tenant.yaml; until then the guardrails stay as they are", s.tenant.Name, strings.Join(missing, ", ")))
	}
	egress, ports, err := r.egress(ctx, s)
	if err != nil {
		return err
	}
	from, to, err := r.peers(ctx, s)
	if err != nil {
		return err
	}
	s.network.rules = isolation.Rules{Admitted: r.Admitted, From: from, To: to, Egress: egress, Ports: ports}
	if !s.opensItself() && s.rules.opened == nil {
		return nil
	}
	s.network.allowed = isolation.Allowed(s.namespace, s.project.Spec.Network.Policies, s.network.rules)
	return nil
}

// opensItself reports whether NetworkPolicies of apps open the project's connections.
func (s *scope) opensItself() bool {
	return s.project.Spec.Network.Policies == v1alpha1.OwnNetworkPolicies
}

// isolate returns kubeop's network policy for the project.
func (s *scope) isolate() any {
	if s.opensItself() {
		return isolation.Closed(s.namespace, s.labels())
	}
	return isolation.Policy(s.namespace, s.labels(), s.network.rules)
}

// narrow takes out of the network policies in the namespace what they may not open any more, such as addresses that a policy of the tenant does not
// allow now. The API server and the checks of apps refuse new ones. The platform's own, by their names, stay. A policy that cannot be changed does not
// keep the others open.
func (r *Reconciler) narrow(ctx context.Context, s *scope) error {
	if s.network.allowed == nil {
		return nil
	}
	began, list := r.Steps.Clock.Now(), &networkingv1.NetworkPolicyList{}
	if err := r.Direct.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return step.Fail(v1alpha1.ApplyFailedReason, fmt.Errorf("listing the network policies of namespace %s: %w", s.namespace, err))
	}
	failed := map[inventory.ObjectID]error{}
	for i := range list.Items {
		policy := &list.Items[i]
		if isolation.OfPlatform(policy.Name) {
			continue
		}
		if err := r.narrowOne(ctx, s, policy); err != nil {
			id := inventory.ObjectID{Group: networkingv1.GroupName, Kind: "NetworkPolicy", Namespace: s.namespace, Name: policy.Name}
			failed[id] = fmt.Errorf("taking out what it may not open: %w", err)
		}
	}
	if len(failed) > 0 {
		return step.Fail(v1alpha1.ApplyFailedReason, inventory.JoinErrors(failed))
	}
	r.looks.looked(s.namespace, began)
	return nil
}

// narrowOne changes one policy, whatever version it has meanwhile: otherwise somebody who keeps changing its annotations would keep it open. A change of
// its rules at the same moment may be lost; drift correction brings back an app's.
func (r *Reconciler) narrowOne(ctx context.Context, s *scope, policy *networkingv1.NetworkPolicy) error {
	before := policy.DeepCopy()
	excess := isolation.Narrow(&policy.Spec, s.network.allowed)
	if len(excess) == 0 {
		return nil
	}
	if err := r.Direct.Patch(ctx, policy, client.MergeFrom(before), client.FieldOwner(fieldmanager.Narrowing)); err != nil {
		return client.IgnoreNotFound(err)
	}
	var why []string
	for _, e := range excess {
		why = append(why, e.Why)
	}
	r.Steps.Events.Eventf(s.project, nil, corev1.EventTypeWarning, v1alpha1.NetworkPolicyNarrowedReason, "Narrow",
		"NetworkPolicy %s %s; that was taken out of it, and what is left is in force: correct it in Git", policy.Name, strings.Join(few.Of(why, 3), ", and "))
	return nil
}
