// Package tenant creates the home of each Tenant: a namespace for its Projects, access for its owners, and its Repository.
package tenant

import (
	"context"

	"k8s.io/pod-security-admission/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/internal/sopskey"
)

// Reconciler reconciles Tenants.
type Reconciler struct {
	Client client.Client
	// Direct reads and writes without the cache. The cache holds only objects with kubeop's labels, and lags a little.
	Direct  client.Client
	Watch   *kube.Watch
	Applier *apply.Applier
	Steps   *step.Runner
	// Kinds are the kinds that quotas count.
	Kinds *quota.Kinds
	// Budgets reads how much of its budget a tenant uses.
	Budgets *usage.Budgets
	// Keys makes the keys for encrypted files.
	Keys *sopskey.Keys
	// Tier knows whether the API server serves ClusterNetworkPolicies.
	Tier *guards.OptionalKind
	// Mutating knows whether the API server serves MutatingAdmissionPolicies.
	Mutating *guards.OptionalKind
	// FlowControl: the API server has the priority levels of the chart, so each tenant gets FlowSchemas.
	FlowControl bool
	// PodSecurity is the version of the Pod Security checks that the API server enforces.
	PodSecurity api.Version
	// OwnerRequests: the API server has the chart's policy kubeop-requests, so owners may annotate their Repository.
	OwnerRequests bool
	// Notified returns the condition about the receivers of notifications.
	Notified func(*v1alpha1.Tenant) step.Note
}

// Reconcile brings one tenant's home to the state in its spec, or removes it.
func (r *Reconciler) Reconcile(ctx context.Context, tenant *v1alpha1.Tenant) (ctrl.Result, error) {
	s := r.newScope(tenant)
	if !tenant.DeletionTimestamp.IsZero() {
		return r.Steps.Finalize(ctx, tenant, s,
			step.Of(v1alpha1.RepositoryUnboundCondition, s, r.removeRepository),
			step.Of(v1alpha1.ProjectsRemovedCondition, s, r.removeProjects),
			step.Of(v1alpha1.NamespaceRemovedCondition, s, r.removeNamespace))
	}
	return r.Steps.Run(ctx, tenant, s,
		step.Of(v1alpha1.NamespaceReadyCondition, s, r.makeNamespace),
		step.Of(v1alpha1.GuardrailsReadyCondition, s, r.guard),
		step.Of(v1alpha1.AccessReadyCondition, s, r.grant),
		step.Of(v1alpha1.RepositoryBoundCondition, s, r.applyRepository),
		step.Of(v1alpha1.DomainsReadyCondition, s, r.compareDomains),
		step.Of(v1alpha1.KeyReadyCondition, s, r.makeKey))
}
