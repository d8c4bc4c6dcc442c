package project

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// takesEffect is after how long the API server certainly judges by changed Guardrails.
const takesEffect = 10 * time.Second

// connect finds the connections of the project, and what NetworkPolicies of its apps may open. Once a project had
// such policies, that stays known: some may be left, and must not open what is refused later.
func (r *Reconciler) connect(ctx context.Context, s *scope) error {
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
	if !equality.Semantic.DeepEqual(s.network.allowed, s.rules.opened) {
		s.network.again = takesEffect // The API server may accept a policy by the old Guardrails after narrow looked.
	}
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
// allow now. The API server and the checks of apps refuse new ones. The platform's own, by their names, stay.
func (r *Reconciler) narrow(ctx context.Context, s *scope) error {
	if s.network.allowed == nil {
		return nil
	}
	list := &networkingv1.NetworkPolicyList{}
	if err := r.Direct.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return fmt.Errorf("listing the network policies of namespace %s: %w", s.namespace, err)
	}
	for i := range list.Items {
		policy := &list.Items[i]
		if isolation.OfPlatform(policy.Name) {
			continue
		}
		before := policy.DeepCopy()
		excess := isolation.Narrow(&policy.Spec, s.network.allowed)
		if len(excess) == 0 {
			continue
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Direct.Patch(ctx, policy, patch, client.FieldOwner(v1alpha1.FieldManager)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("narrowing network policy %s of namespace %s: %w", policy.Name, s.namespace, err)
		}
		var why []string
		for _, e := range excess {
			why = append(why, e.Why)
		}
		r.Steps.Events.Eventf(s.project, nil, corev1.EventTypeWarning, v1alpha1.NetworkPolicyNarrowedReason, "Narrow",
			"NetworkPolicy %s %s; that was taken out of it, and what is left is in force: correct it in Git", policy.Name, strings.Join(few.Of(why, 3), ", and "))
	}
	return nil
}
