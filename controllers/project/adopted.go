package project

import (
	"context"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/pvc"
)

// leavePlatformNamespace removes kubeop's labels and objects from a namespace, and the claims of its apps that terms allow, and keeps the
// namespace, unless the namespace is known to be created by kubeop. Then it reports false.
func (r *Reconciler) leavePlatformNamespace(ctx context.Context, s *scope, terms pvc.Terms) (left bool, err error) {
	live, err := namespace.Own(ctx, r.Direct, s.namespace, namespace.Owner{Labels: s.labels()})
	if live == nil || live.Labels[v1alpha1.AdoptedLabel] == "false" {
		return false, err
	}
	deployer, err := r.Clients.As(s.namespace)
	if err != nil {
		return false, err
	}
	claims, err := pvc.List(ctx, r.Direct, s.namespace)
	if err != nil {
		return false, err
	}
	terms.Of = s.labels()
	doomed, _ := terms.Divide(claims)
	if err := pvc.Delete(ctx, deployer, doomed); err != nil {
		return false, err
	}
	if err := s.made.Withdraw(ctx, s.labels(), access.Platform(s.namespace, r.Clients.Operator, s.labels())); err != nil {
		return false, err
	}
	return true, namespace.Leave(ctx, r.Direct, live)
}
