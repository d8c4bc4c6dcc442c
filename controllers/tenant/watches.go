package tenant

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/internal/sopskey"
)

// SetupWithManager adds the controller. These events wake a tenant: a change of its Tenant, of an object created for it or of the domains
// of another tenant, a policy that it is under, its key for encrypted files (in secrets), an admission policy that appears, goes or denies,
// the kind ClusterNetworkPolicy that appears or goes, a project that is created, deleted, stopped or resumed, and an app of a project that
// is created or deleted, or whose readiness changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, secrets cache.Cache, options controller.Options) error {
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	c, err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Tenant{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Project{}, onProject, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, stoppedChanged))).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(r.withDomains), builder.WithPredicates(domainsChanged)).
		Watches(&v1alpha1.Policy{}, handler.EnqueueRequestsFromMapFunc(r.underPolicy), changed).
		Watches(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, handler.EnqueueRequestsFromMapFunc(r.withGuards), builder.WithPredicates(guards.Changed)).
		Watches(&admissionregistrationv1.ValidatingAdmissionPolicy{}, handler.EnqueueRequestsFromMapFunc(r.withGuards), builder.WithPredicates(guards.Changed)).
		WatchesRawSource(source.Kind(secrets, credentials.MetadataOnly(), handler.TypedEnqueueRequestsFromMapFunc(withKey))).
		WatchesRawSource(r.Tier.Source(r.wakeAll)).
		WatchesRawSource(r.onMutating(mgr.GetCache())).
		Watches(&v1alpha1.Repository{}, handler.EnqueueRequestsFromMapFunc(tenantOf), changed).
		Watches(&v1alpha1.App{}, rollup.Handler(requestOf), builder.WithPredicates(rollup.Changed)).
		WithOptions(options).
		Build(reconcile.AsReconciler(r.Client, r))
	if err != nil {
		return err
	}
	home.WakeOnChange(r.Watch, c, madeFor)
	return nil
}

// onProject wakes the tenant of a project: at once, but only after rollup.Pause if the project is gone. One commit often removes many, and
// each time the tenant has to write its FlowSchemas and its status.
var onProject = handler.Funcs{
	CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(q, tenantOf(ctx, e.Object), 0) },
	UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(q, tenantOf(ctx, e.ObjectNew), 0) },
	DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
		wake(q, tenantOf(ctx, e.Object), rollup.Pause)
	},
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func wake(q queue, requests []reconcile.Request, after time.Duration) {
	for _, r := range requests {
		q.AddAfter(r, after)
	}
}

// withKey maps a Secret of the operator's namespace to the tenant whose key it has.
func withKey(_ context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	return requestOf(map[string]string{v1alpha1.TenantLabel: sopskey.TenantOf(secret.Name)})
}

// tenantOf maps a project or repository to its tenant.
func tenantOf(_ context.Context, o client.Object) []reconcile.Request {
	return requestOf(o.GetLabels())
}

// madeFor maps an object to the tenant that it was created for. It skips objects of projects, and objects whose labels do not match their
// namespace.
func madeFor(_ context.Context, o client.Object) []reconcile.Request {
	home := v1alpha1.HomeNamespace(o.GetLabels()[v1alpha1.TenantLabel])
	if o.GetLabels()[v1alpha1.ProjectLabel] != "" || (o.GetNamespace() != "" && o.GetNamespace() != home) {
		return nil
	}
	return requestOf(o.GetLabels())
}

func requestOf(labels map[string]string) []reconcile.Request {
	tenant := labels[v1alpha1.TenantLabel]
	if tenant == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: tenant}}}
}
