// Package project creates the namespace of each Project, with guardrails, network isolation, the deployer of its apps, and access for the
// tenant's owners.
package project

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/delivered"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/registry"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/quota"
)

// Reconciler reconciles Projects.
type Reconciler struct {
	Client client.Client
	// Direct reads and writes without the cache. The cache holds only objects with kubeop's labels, and lags a little.
	Direct  client.Client
	Watch   *kube.Watch
	Applier *apply.Applier
	Clients *kube.Clients
	Steps   *step.Runner
	Quotas
	// Forget drops the data in memory about a deleted namespace.
	Forget func(namespace string)
	Connections
	// Refusals reports whether a newer version of a project is refused.
	Refusals *refusal.Index
	// Deliveries knows which deliveries of the apps an event reported.
	Deliveries delivered.Reporter
	// Hosts has the host names of projects.
	Hosts *hostclaims.Claims
	Grantees
	// Promotions returns the condition about promotions to a project, and what was promoted or is held.
	Promotions func(*v1alpha1.Project) (step.Note, v1alpha1.PromotionStatus)
	memory
}

// memory is what this process knows of projects: what it applied for them, and when it last wrote how many apps they have.
type memory struct {
	applied apply.Memory
	counts  rollup.Pace
}

// Quotas are the kinds that quotas count, what keeps the quotas within the budgets of tenants, and how much of the API server's store each
// tenant may use.
type Quotas struct {
	Kinds  *quota.Kinds
	Grants *usage.Grants
	Store  *usage.Store
}

// Grantees are whom a project lets in, beside its tenant's owners.
type Grantees struct {
	// Registries keep the pull Secrets of projects.
	Registries *registry.Provider
	// Manager is the service account of the management API, which gets tokens for the kubeconfigs of people; without a name, there are no accounts for people.
	Manager types.NamespacedName
}

// Connections are what the connections of projects depend on, and when to look at those again that apps open.
type Connections struct {
	// Admitted are labels of namespaces whose pods may reach every project, such as those of the ingress controller and of monitoring.
	Admitted []map[string]string
	// Networks are the addresses that no tenant's pods may reach.
	Networks Networks
	// Tier knows whether the API server serves ClusterNetworkPolicies.
	Tier  *guards.OptionalKind
	looks looks
}

// Reconcile brings one project's namespace to the state in its spec, or removes it.
func (r *Reconciler) Reconcile(ctx context.Context, project *v1alpha1.Project) (ctrl.Result, error) {
	s := r.newScope(project)
	if !project.DeletionTimestamp.IsZero() {
		r.Deliveries.Forget(project.UID)
		r.looks.forget(s.namespace)
		r.counts.Forget(project.UID)
		defer r.applied.Forget(project.UID)
		return r.Steps.Finalize(ctx, project, s,
			step.Of(v1alpha1.AppsRemovedCondition, s, r.removeApps),
			step.Of(v1alpha1.NamespaceRemovedCondition, s, r.removeNamespace))
	}
	defer r.remind(s)
	if s.ofPlatform() {
		return r.Steps.Run(ctx, project, s,
			step.Of(v1alpha1.DependenciesReadyCondition, s, r.resolvePlatform),
			step.Of(v1alpha1.NamespaceReadyCondition, s, r.makePlatformNamespace),
			step.Of(v1alpha1.AccessReadyCondition, s, r.grantPlatform))
	}
	return r.Steps.Run(ctx, project, s,
		step.Of(v1alpha1.DependenciesReadyCondition, s, r.resolve),
		step.Of(v1alpha1.AccessReadyCondition, s, r.revoke), // Before all that may fail for what the tenant writes.
		step.Of(v1alpha1.NamespaceReadyCondition, s, r.makeNamespace),
		step.Of(v1alpha1.GuardrailsReadyCondition, s, r.stop), // Before guard, which may fail, too.
		step.Of(v1alpha1.GuardrailsReadyCondition, s, r.guard),
		step.Of(v1alpha1.AccessReadyCondition, s, r.grant),
		step.Of(v1alpha1.RegistriesReadyCondition, s, r.keepPullSecrets)) // As the deployer, which grant makes.
}
