// Package project makes each Project its namespace: guardrails, isolation, the deployer of its apps, and access for the
// tenant's owners.
package project

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/quota"
)

// Reconciler reconciles Projects.
type Reconciler struct {
	Client client.Client
	// Direct reads and writes past the cache, which holds only what is labelled as ours, and that a little late.
	Direct  client.Client
	Watch   *kube.Watch
	Applier *apply.Applier
	Clients *kube.Clients
	Steps   *step.Runner
	// Kinds are those that quotas count, and Store is how much of them all projects of a tenant have.
	Kinds *quota.Kinds
	Store *usage.Store
	// Forget drops what is held in memory of a namespace that is gone.
	Forget func(namespace string)
	// IngressNamespace is the namespace of the ingress controller, which may reach every project; "" lets none in.
	IngressNamespace string
	// Networks are what no tenant's egress lets pods reach.
	Networks Networks
	// Refusals says whether a newer version of a project is refused.
	Refusals *refusal.Index
}

// Reconcile brings one project's namespace to what its spec says, or takes it away.
func (r *Reconciler) Reconcile(ctx context.Context, project *v1alpha1.Project) (ctrl.Result, error) {
	s := r.newScope(project)
	if !project.DeletionTimestamp.IsZero() {
		return r.Steps.Finalize(ctx, project, s,
			step.Of(v1alpha1.AppsRemovedCondition, s, r.removeApps),
			step.Of(v1alpha1.NamespaceRemovedCondition, s, r.removeNamespace))
	}
	return r.Steps.Run(ctx, project, s,
		step.Of(v1alpha1.DependenciesReadyCondition, s, r.resolve),
		step.Of(v1alpha1.NamespaceReadyCondition, s, r.makeNamespace),
		step.Of(v1alpha1.GuardrailsReadyCondition, s, r.guard),
		step.Of(v1alpha1.AccessReadyCondition, s, r.grant))
}
