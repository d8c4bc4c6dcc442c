package project

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/delivered"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/registry"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/pullsecret"
)

// SetupWithManager adds the controller. These events wake a project: a change of its Project, of a project with which spec.network connects
// it, of an object created for it, of its tenant, of a policy that its tenant is under, of a Registry that its tenant may use or its Secret
// (in secrets), of its pull Secrets and its default service account, of its claims of host names, of the cluster's networks, of whether
// ClusterNetworkPolicies are served, of the tenant's remaining number of objects or of what is left of its budget; an app that is created
// or deleted, or whose readiness or delivery changes; and the time of a further look at NetworkPolicies of its apps.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, secrets cache.Cache, options controller.Options) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Project{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.connected), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(r.projectsOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Policy{}, handler.EnqueueRequestsFromMapFunc(r.under), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Registry{}, handler.EnqueueRequestsFromMapFunc(r.using), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(secrets, credentials.MetadataOnly(), handler.TypedEnqueueRequestsFromMapFunc(r.rotated))).
		WatchesRawSource(r.onPullSecrets()).
		Watches(&v1alpha1.HostnameClaim{}, onClaim{handler.EnqueueRequestsFromMapFunc(hostclaims.ProjectOf), r.Hosts}).
		Watches(&v1alpha1.App{}, rollup.Handler(requestOf), builder.WithPredicates(predicate.Or(rollup.Changed, delivered.Changed))).
		WatchesRawSource(r.Refusals.Wakes(v1alpha1.ProjectKind)).
		WatchesRawSource(r.onNetworks()).
		WatchesRawSource(r.Tier.Source(r.wakeAll)).
		WatchesRawSource(r.onStore()).
		WatchesRawSource(r.onGrants()).
		WatchesRawSource(r.onLooks()).
		WithOptions(options).
		Build(reconcile.AsReconciler(r.Client, r))
	if err != nil {
		return err
	}
	home.WakeOnChange(r.Watch, c, madeFor)
	return nil
}

// onClaim wakes the project of a claim: at once, but only after rollup.Pause if the claim is gone and its name is not in the Guardrails, as
// when kubeop released it. One commit often removes many apps with host names.
type onClaim struct {
	handler.EventHandler
	hosts *hostclaims.Claims
}

// Delete implements handler.EventHandler.
func (h onClaim) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if h.hosts.Listed(ctx, e.Object.(*v1alpha1.HostnameClaim)) {
		h.EventHandler.Delete(ctx, e, q)
		return
	}
	for _, r := range hostclaims.ProjectOf(ctx, e.Object) {
		q.AddAfter(r, rollup.Pause)
	}
}

// projectsOf maps a tenant to its projects. If listing them fails, the error is logged, and the projects are reconciled at their interval.
func (r *Reconciler) projectsOf(ctx context.Context, tenant client.Object) []reconcile.Request {
	projects := &v1alpha1.ProjectList{}
	if err := r.Client.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant.GetName()))); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the projects of a tenant that changed; they are reconciled at their interval", "tenant", tenant.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range projects.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&projects.Items[i])})
	}
	return requests
}

// under maps a policy to the projects of the tenants that are under it. If listing the tenants fails, the error is logged, and the projects
// are reconciled at their interval.
func (r *Reconciler) under(ctx context.Context, policy client.Object) (requests []reconcile.Request) {
	tenants := &v1alpha1.TenantList{}
	if err := r.Client.List(ctx, tenants, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the tenants under a policy that changed; their projects are reconciled at their interval", "policy", policy.GetName())
		return nil
	}
	of := []v1alpha1.Policy{*policy.(*v1alpha1.Policy)}
	for i := range tenants.Items {
		if selected, _ := guardrails.Select(&tenants.Items[i], of); len(selected) > 0 {
			requests = append(requests, r.projectsOf(ctx, &tenants.Items[i])...)
		}
	}
	return requests
}

// onStore wakes all projects of a tenant when the number of objects that they may still create has changed.
func (r *Reconciler) onStore() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.Store.OnChange(func(ctx context.Context, name string) {
			tenant := &v1alpha1.Tenant{}
			tenant.Name = name
			for _, request := range r.projectsOf(ctx, tenant) {
				queue.Add(request)
			}
		})
		return nil
	})
}

// onGrants wakes a project that did not fit into the budget of its tenant when another one gave something back.
func (r *Reconciler) onGrants() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.Grants.OnChange(func(tenant, project string) {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: v1alpha1.HomeNamespace(tenant), Name: project}})
		})
		return nil
	})
}

// madeFor maps an object to the project that it was created for. It skips objects of apps, and objects whose labels do not match their
// namespace.
func madeFor(_ context.Context, o client.Object) []reconcile.Request {
	namespace := v1alpha1.ProjectNamespace(o.GetLabels()[v1alpha1.TenantLabel], o.GetLabels()[v1alpha1.ProjectLabel])
	if o.GetLabels()[v1alpha1.AppLabel] != "" || (o.GetNamespace() != namespace && o.GetName() != namespace && o.GetName() != clusterRole(namespace)) {
		return nil
	}
	return requestOf(o.GetLabels())
}

func requestOf(labels map[string]string) []reconcile.Request {
	tenant, project := labels[v1alpha1.TenantLabel], labels[v1alpha1.ProjectLabel]
	if tenant == "" || project == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: v1alpha1.HomeNamespace(tenant), Name: project}}}
}

// using maps a Registry to the projects of the tenants that may use it. If listing them fails, the error is logged, and the projects are
// reconciled at their interval.
func (r *Reconciler) using(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	tenants, policies := &v1alpha1.TenantList{}, &v1alpha1.PolicyList{}
	for _, list := range []client.ObjectList{tenants, policies} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing the tenants that may use a registry that changed; their projects are reconciled at their interval", "registry", o.GetName())
			return nil
		}
	}
	for i := range tenants.Items {
		if pullsecret.May(&tenants.Items[i], policies.Items, o.(*v1alpha1.Registry)) {
			requests = append(requests, r.projectsOf(ctx, &tenants.Items[i])...)
		}
	}
	return requests
}

// rotated maps a Secret of the operator's namespace to the projects of the tenants that may use a Registry with its credentials.
func (r *Reconciler) rotated(ctx context.Context, secret *metav1.PartialObjectMetadata) (requests []reconcile.Request) {
	for _, of := range r.Registries.Secrets.Changed(ctx, secret) {
		requests = append(requests, r.using(ctx, &of)...)
	}
	return requests
}

// onPullSecrets wakes a project when somebody changes one of its pull Secrets, or the service account that names them.
func (r *Reconciler) onPullSecrets() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.Registries.OnChange(func(namespace, kind, name string, _ map[string]string) {
			if !registry.Concerns(kind, name) {
				return
			}
			tenant := v1alpha1.TenantOf(namespace)
			project := strings.TrimPrefix(namespace, v1alpha1.ProjectNamespace(tenant, ""))
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: v1alpha1.HomeNamespace(tenant), Name: project}})
		})
		return nil
	})
}
