// Package tenant makes each Tenant its home: a namespace for its Projects, access for its owners, and its Repository.
package tenant

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/quota"
)

// Reconciler reconciles Tenants.
type Reconciler struct {
	Client client.Client
	// Direct reads and writes past the cache, which holds only what is labelled as ours, and that a little late.
	Direct  client.Client
	Watch   *kube.Watch
	Applier *apply.Applier
	Steps   *step.Runner
	// Kinds are those that quotas count.
	Kinds *quota.Kinds
	// FlowControl: the API server has the priority levels of the chart, for which each tenant is given FlowSchemas.
	FlowControl bool
}

// Reconcile brings one tenant's home to what its spec says, or takes it away.
func (r *Reconciler) Reconcile(ctx context.Context, tenant *v1alpha1.Tenant) (ctrl.Result, error) {
	s := r.newScope(tenant)
	if !tenant.DeletionTimestamp.IsZero() {
		return r.Steps.Finalize(ctx, tenant, s,
			step.Of(v1alpha1.RepositoryUnboundCondition, s, r.unbind),
			step.Of(v1alpha1.ProjectsRemovedCondition, s, r.removeProjects),
			step.Of(v1alpha1.NamespaceRemovedCondition, s, r.removeNamespace))
	}
	return r.Steps.Run(ctx, tenant, s,
		step.Of(v1alpha1.NamespaceReadyCondition, s, r.makeNamespace),
		step.Of(v1alpha1.GuardrailsReadyCondition, s, r.guard),
		step.Of(v1alpha1.AccessReadyCondition, s, r.grant),
		step.Of(v1alpha1.RepositoryBoundCondition, s, r.bind))
}
