// Package project finds the project of an App, its deployer, and its limits.
package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/kube"
	within "github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/stop"
)

// Watch is implemented by *kube.Watch, the operator's watch of labelled objects.
type Watch interface {
	Follow(kind schema.GroupVersionKind) error
	Live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error)
	Namespace(ctx context.Context, name string) (metav1.Object, error)
}

// Finder finds the projects of Apps.
type Finder struct {
	Client client.Client
	// Deployer returns the client of a namespace's deployer.
	Deployer func(namespace string) (client.Client, error)
	Watch    Watch
	// Limits are for tenants without limits of their own.
	Limits budget.Limits

	synced subject.Memory[synced]
}

// synced: the watches of all kinds in the App's inventory had their first list in this process.
type synced bool

// Find finds the project by the labels of the App's namespace, which tenants cannot write, and waits until the project is ready. It sets
// the App's owner, deployer client and limits.
func (f *Finder) Find(ctx context.Context, s *subject.Subject, recorded []v1alpha1.InventoryEntry) error {
	if err := f.awaitWatches(s, recorded); err != nil {
		return err
	}
	live, err := f.Watch.Namespace(ctx, s.App.Namespace)
	if err != nil {
		return err
	}
	if live == nil {
		return step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute,
			"namespace %s belongs to no project; an App belongs in the namespace kubeop-<tenant>-<project>", s.App.Namespace)
	}
	tenant, project := live.GetLabels()[v1alpha1.TenantLabel], live.GetLabels()[v1alpha1.ProjectLabel]
	if tenant != v1alpha1.TenantOf(s.App.Namespace) || v1alpha1.ProjectNamespace(tenant, project) != s.App.Namespace {
		return step.Stop(v1alpha1.DependencyNotReadyReason, fmt.Errorf(
			"namespace %s has the labels of project %s of tenant %s, but not the name of that project's namespace", s.App.Namespace, project, tenant))
	}
	if err := f.awaitProject(ctx, s, tenant, project); err != nil {
		return err
	}
	if err := f.allow(ctx, s, tenant, live); err != nil {
		return err
	}
	if err := f.awaitResume(ctx, s); err != nil {
		return err
	}
	s.Owner = own.Owner{Tenant: tenant, Project: project, App: s.App.Name, Namespace: s.App.Namespace}
	s.Client, err = f.Deployer(s.App.Namespace)
	if errors.Is(err, kube.ErrPlatformOff) {
		return step.Stop(v1alpha1.DependencyNotReadyReason, err)
	}
	return err
}

// awaitWatches returns a *kube.Unready until the watches of all kinds in the App's inventory had their first list. After a restart
// thousands of Apps are reconciled before that: no App begins what it could not finish, and the watches start together.
func (f *Finder) awaitWatches(s *subject.Subject, recorded []v1alpha1.InventoryEntry) error {
	synced := f.synced.Get(s.App)
	if *synced {
		return nil
	}
	var first error
	followed := map[schema.GroupVersionKind]bool{corev1.SchemeGroupVersion.WithKind("Secret"): true} // deployers watch Secrets
	for _, e := range recorded {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			return err
		}
		kind := schema.GroupVersionKind{Group: id.Group, Version: e.Version, Kind: id.Kind}
		if id.Namespace == "" || followed[kind] { // Usually no watch shows cluster-scoped objects.
			continue
		}
		followed[kind] = true
		var unready *kube.Unready
		if err := f.Watch.Follow(kind); errors.As(err, &unready) && unready.Err == nil {
			first = cmp.Or(first, err)
		} // The step that needs the watch reports other errors.
	}
	*synced = first == nil
	return first
}

// awaitProject waits for the project: until it was ready once, there is no deployer, and no quota that limits the App.
func (f *Finder) awaitProject(ctx context.Context, s *subject.Subject, tenant, name string) error {
	project := &v1alpha1.Project{}
	key := client.ObjectKey{Namespace: v1alpha1.HomeNamespace(tenant), Name: name}
	err := f.Client.Get(ctx, key, project)
	if apierrors.IsNotFound(err) {
		return step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute, "project %s does not exist", key)
	}
	if err != nil {
		return fmt.Errorf("reading project %s: %w", key, err)
	}
	s.PullSecrets = project.Status.PullSecrets
	// The project binds the deployer last. So once the deployer is bound, quota and policies exist. A project that is being repaired does
	// not stop its Apps.
	binding := types.NamespacedName{Namespace: project.Status.Namespace, Name: v1alpha1.Deployer}
	bound, _, err := f.Watch.Live(ctx, rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), binding)
	if err != nil {
		return err
	}
	if bound == nil {
		return step.Wait(v1alpha1.DependencyNotReadyReason, 10*time.Second, "project %s is not ready: %s",
			name, conditions.GetMessage(project, v1alpha1.ReadyCondition))
	}
	return nil
}

// awaitResume waits while administrators stop the tenant, and until pods are admitted in the namespace again: until then no pod can become ready, so
// no hook, release or health check could succeed. The time that the App has to become healthy begins anew afterwards.
func (f *Finder) awaitResume(ctx context.Context, s *subject.Subject) error {
	if s.Stopped == nil {
		quota, _, err := f.Watch.Live(ctx, corev1.SchemeGroupVersion.WithKind("ResourceQuota"), types.NamespacedName{Namespace: s.App.Namespace, Name: stop.Quota})
		if quota == nil || quota.GetAnnotations()[v1alpha1.ResumedAtAnnotation] != "" {
			return err
		}
		return step.Wait(v1alpha1.StoppedReason, time.Second, "waits until pods are admitted in namespace %s again, after tenant %s was stopped", s.App.Namespace, v1alpha1.TenantOf(s.App.Namespace))
	}
	s.Settled()
	return step.Wait(v1alpha1.StoppedReason, 10*time.Minute, "Stopped by administrators: nothing of tenant %s runs, and nothing new is delivered %s", v1alpha1.TenantOf(s.App.Namespace), s.Stopped)
}

// allow sets what administrators allow the tenant's Apps. The platform itself has no Tenant: its Apps have the default limits, and the Pod
// Security level of their namespace's label.
func (f *Finder) allow(ctx context.Context, s *subject.Subject, name string, namespace metav1.Object) error {
	tenant := &v1alpha1.Tenant{}
	if err := f.Client.Get(ctx, client.ObjectKey{Name: name}, tenant); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading tenant %s: %w", name, err)
	}
	rules := &v1alpha1.Guardrails{}
	err := f.Client.Get(ctx, client.ObjectKey{Namespace: s.App.Namespace, Name: v1alpha1.GuardrailsName}, rules)
	switch {
	case err == nil:
		s.Guardrails = &rules.Spec
	case apierrors.IsNotFound(err) && name == v1alpha1.PlatformTenant: // Policies are for tenants.
	case apierrors.IsNotFound(err):
		return step.Wait(v1alpha1.DependencyNotReadyReason, 10*time.Second, "waits for the guardrails of namespace %s, in which kubeop writes the policies of tenant %s", s.App.Namespace, name)
	default:
		return fmt.Errorf("reading the guardrails of namespace %s: %w", s.App.Namespace, err)
	}
	var usual classes.Usual
	if name != v1alpha1.PlatformTenant {
		if usual, err = classes.Find(ctx, f.Client); err != nil {
			return err
		}
	}
	f.terms(s, tenant, namespace, usual)
	return nil
}

// Place is where an App is delivered: its project's namespace and tenant, and a client with the rights that the delivery has.
type Place struct {
	Owner     own.Owner
	Tenant    *v1alpha1.Tenant
	Namespace metav1.Object
	Client    client.Client
	// Guardrails are the rules of the policies that hold there; nil for none.
	Guardrails *v1alpha1.GuardrailsSpec
	// PullSecrets are those of Subject.
	PullSecrets []v1alpha1.PullSecret
	// Usual are the default classes of the cluster, as far as they are known.
	Usual classes.Usual
}

// Settle is Find for a caller that knows the place, whether the project is ready or not.
func (f *Finder) Settle(s *subject.Subject, at Place) {
	s.Owner, s.Client, s.Guardrails, s.PullSecrets = at.Owner, at.Client, at.Guardrails, at.PullSecrets
	f.terms(s, at.Tenant, at.Namespace, at.Usual)
}

// terms sets what the Tenant and the namespace allow.
func (f *Finder) terms(s *subject.Subject, tenant *v1alpha1.Tenant, namespace metav1.Object, usual classes.Usual) {
	s.ClusterKinds, s.Limits = tenant.Spec.ClusterKinds, f.Limits.With(&tenant.Spec.Limits)
	s.Exceptions = subject.Exceptions{
		Taints: tenant.Spec.Taints, IngressAnnotations: tenant.Spec.IngressAnnotations, CSIDrivers: tenant.Spec.CSIDrivers, PriorityClasses: tenant.Spec.PriorityClasses,
		GracePeriod: within.MaxGracePeriod(tenant), Usual: usual,
	}
	if usual.Priority != "" {
		s.PriorityClasses = append(slices.Clip(s.PriorityClasses), usual.Priority)
	}
	s.Freeze, s.Frozen = tenant.Spec.Freeze, freeze.ByAdministrators(tenant)
	s.Stopped = freeze.Stopped(tenant)
	s.PodSecurity = guardrails.PodSecurity(tenant, s.Guardrails).Level
	if v1alpha1.TenantOf(s.App.Namespace) == v1alpha1.PlatformTenant { // Most clusters enforce no level in a namespace without the label.
		s.PodSecurity = cmp.Or(namespace.GetLabels()[api.EnforceLevelLabel], string(api.LevelPrivileged))
	}
}

// Forget drops the state of an App.
func (f *Finder) Forget(app *v1alpha1.App) { f.synced.Forget(app) }
