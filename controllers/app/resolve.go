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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/own"
)

// resolve finds the project by the labels of the app's namespace, which tenants cannot write, waits for it and for what
// the app depends on to be ready, and takes the deployer's client.
func (r *Reconciler) resolve(ctx context.Context, s *scope) error {
	if err := r.inStep(s); err != nil {
		return err
	}
	live, err := r.Watch.Namespace(ctx, s.app.Namespace)
	if err != nil {
		return err
	}
	if live == nil {
		return step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute,
			"namespace %s belongs to no project; an App belongs in the namespace kubeop-<tenant>-<project>", s.app.Namespace)
	}
	tenant, project := live.GetLabels()[v1alpha1.TenantLabel], live.GetLabels()[v1alpha1.ProjectLabel]
	if err := r.await(ctx, tenant, project); err != nil {
		return err
	}
	if err := r.allow(ctx, s, tenant); err != nil {
		return err
	}
	s.owner = own.Owner{Tenant: tenant, Project: project, App: s.app.Name, Namespace: s.app.Namespace}
	if s.client, err = r.Clients.As(s.app.Namespace); err != nil {
		return err
	}
	if err := compile(s); err != nil {
		return step.Stop(v1alpha1.InvalidExpressionReason, err)
	}
	return r.awaitDependencies(ctx, s)
}

// inStep is an *kube.Unready until the watches of all that the app is recorded to hold have their first lists. After a restart
// thousands of apps are looked at before they have: none of them begins what it could not end, and the watches begin together.
func (r *Reconciler) inStep(s *scope) error {
	if s.memory.inStep {
		return nil
	}
	var first error
	asked := map[schema.GroupVersionKind]bool{corev1.SchemeGroupVersion.WithKind("Secret"): true} // Secrets are the deployers' to watch.
	for _, e := range namespaced(s.inventory.Entries) {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			return err
		}
		kind := schema.GroupVersionKind{Group: id.Group, Version: e.Version, Kind: id.Kind}
		if asked[kind] {
			continue
		}
		asked[kind] = true
		var unready *kube.Unready
		if err := r.Watch.Follow(kind); errors.As(err, &unready) && unready.Err == nil {
			first = cmp.Or(first, err)
		} // What else fails is told by the step that needs it.
	}
	s.memory.inStep = first == nil
	return first
}

// await waits for the project: before it was ready once there is no deployer, and no quota that holds the app.
func (r *Reconciler) await(ctx context.Context, tenant, name string) error {
	project := &v1alpha1.Project{}
	key := client.ObjectKey{Namespace: v1alpha1.HomeNamespace(tenant), Name: name}
	err := r.Client.Get(ctx, key, project)
	if apierrors.IsNotFound(err) {
		return step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute, "project %s does not exist", key)
	}
	if err != nil {
		return fmt.Errorf("reading project %s: %w", key, err)
	}
	// The deployer is bound last. Where it is there, what guards the project is too; that the project is being repaired at
	// this moment holds up no app.
	binding := types.NamespacedName{Namespace: project.Status.Namespace, Name: v1alpha1.Deployer}
	bound, _, err := r.Watch.Live(ctx, rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), binding)
	if err != nil {
		return err
	}
	if bound == nil {
		return step.Wait(v1alpha1.DependencyNotReadyReason, 10*time.Second, "project %s is not ready: %s",
			name, conditions.GetMessage(project, v1alpha1.ReadyCondition))
	}
	return nil
}

// allow finds what administrators allow the tenant's apps.
func (r *Reconciler) allow(ctx context.Context, s *scope, name string) error {
	tenant := &v1alpha1.Tenant{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, tenant); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading tenant %s: %w", name, err)
	}
	limits := r.Limits.With(&tenant.Spec.Limits)
	s.clusterKinds, s.limits = tenant.Spec.ClusterKinds, limits.App
	s.renderedBytes, s.storeBytes = limits.RenderedBytes, limits.StoreBytes
	return nil
}
