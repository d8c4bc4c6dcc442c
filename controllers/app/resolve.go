package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/podsecurity"
)

// watch is what is read of the operator's watch of labelled objects, a *kube.Watch.
type watch interface {
	Follow(kind schema.GroupVersionKind) error
	Live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error)
	Namespace(ctx context.Context, name string) (metav1.Object, error)
}

// projects finds the projects of Apps.
type projects struct {
	client client.Client
	// deployer returns the client of a namespace's deployer.
	deployer func(namespace string) (client.Client, error)
	watch    watch
	limits   budget.Limits

	synced subject.Memory[synced]
}

// synced: the watches of all that the App was recorded to hold when this process began had their first lists.
type synced bool

// resolve finds the project by the labels of the App's namespace, which tenants cannot write, waits for it to be ready, and takes the
// deployer's client and the tenant's limits.
func (r *projects) resolve(ctx context.Context, s *scope) error {
	if err := r.awaitWatches(s); err != nil {
		return err
	}
	live, err := r.watch.Namespace(ctx, s.App.Namespace)
	if err != nil {
		return err
	}
	if live == nil {
		return step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute,
			"namespace %s belongs to no project; an App belongs in the namespace kubeop-<tenant>-<project>", s.App.Namespace)
	}
	tenant, project := live.GetLabels()[v1alpha1.TenantLabel], live.GetLabels()[v1alpha1.ProjectLabel]
	if err := r.awaitProject(ctx, tenant, project); err != nil {
		return err
	}
	if err := r.allow(ctx, s, tenant); err != nil {
		return err
	}
	s.Owner = own.Owner{Tenant: tenant, Project: project, App: s.App.Name, Namespace: s.App.Namespace}
	s.Client, err = r.deployer(s.App.Namespace)
	return err
}

// awaitWatches is an *kube.Unready until the watches of all that the App is recorded to hold have their first lists. After a restart thousands
// of Apps are looked at before they have: none of them begins what it could not end, and the watches begin together.
func (r *projects) awaitWatches(s *scope) error {
	synced := r.synced.Get(s.App)
	if *synced {
		return nil
	}
	var first error
	followed := map[schema.GroupVersionKind]bool{corev1.SchemeGroupVersion.WithKind("Secret"): true} // Secrets are the deployers' to watch.
	for _, e := range record.Namespaced(s.inventory.Entries) {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			return err
		}
		kind := schema.GroupVersionKind{Group: id.Group, Version: e.Version, Kind: id.Kind}
		if followed[kind] {
			continue
		}
		followed[kind] = true
		var unready *kube.Unready
		if err := r.watch.Follow(kind); errors.As(err, &unready) && unready.Err == nil {
			first = cmp.Or(first, err)
		} // What else fails is reported by the step that needs it.
	}
	*synced = first == nil
	return first
}

// awaitProject waits for the project: before it was ready once there is no deployer, and no quota that holds the App.
func (r *projects) awaitProject(ctx context.Context, tenant, name string) error {
	project := &v1alpha1.Project{}
	key := client.ObjectKey{Namespace: v1alpha1.HomeNamespace(tenant), Name: name}
	err := r.client.Get(ctx, key, project)
	if apierrors.IsNotFound(err) {
		return step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute, "project %s does not exist", key)
	}
	if err != nil {
		return fmt.Errorf("reading project %s: %w", key, err)
	}
	// The deployer is bound last. Where it is there, what guards the project is too; a project that is being repaired now holds up no App.
	binding := types.NamespacedName{Namespace: project.Status.Namespace, Name: v1alpha1.Deployer}
	bound, _, err := r.watch.Live(ctx, rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), binding)
	if err != nil {
		return err
	}
	if bound == nil {
		return step.Wait(v1alpha1.DependencyNotReadyReason, 10*time.Second, "project %s is not ready: %s",
			name, conditions.GetMessage(project, v1alpha1.ReadyCondition))
	}
	return nil
}

// allow finds what administrators allow the tenant's Apps.
func (r *projects) allow(ctx context.Context, s *scope, name string) error {
	tenant := &v1alpha1.Tenant{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, tenant); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading tenant %s: %w", name, err)
	}
	s.ClusterKinds, s.Limits = tenant.Spec.ClusterKinds, r.limits.With(&tenant.Spec.Limits)
	s.PodSecurity = cmp.Or(tenant.Spec.PodSecurity, podsecurity.Default)
	s.Fill = podsecurity.FillOf(s.App.Spec.PodSecurity.Fill, s.PodSecurity)
	return nil
}

// Forget drops what is known of an App.
func (r *projects) Forget(app *v1alpha1.App) { r.synced.Forget(app) }
