package project

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/pvc"
)

func (r *Reconciler) home(s *scope, owner namespace.Owner) home.Home {
	return home.Home{Direct: r.Direct, Steps: r.Steps, Of: s.project, Name: s.namespace, Owner: owner}
}

// makeNamespace creates the project's namespace with the terms that administrators set for the tenant.
func (r *Reconciler) makeNamespace(ctx context.Context, s *scope) error {
	held := guardrails.PodSecurity(s.tenant, &s.rules.spec)
	limits := namespace.LimitsOf(s.tenant, guardrails.ExternalNames(&s.rules.spec), guardrails.ExternalIPs(&s.rules.spec))
	warned, recorded := guardrails.NoticedPodSecurity(held.PodSecurityRules, &s.rules.spec)
	terms := namespace.Terms{
		PodSecurity: held.Level, PodSecurityVersion: held.Version, Warned: warned, Recorded: recorded, Limits: limits, Guardrails: true, Frozen: s.tenant.Spec.Frozen,
		Stopped: s.tenant.Spec.Stopped,
	}
	return r.home(s, s.ownedBy(s.tenant)).Make(ctx, s.made, terms)
}

// open deletes the quota that forbade new pods and claims while an earlier project of the same name was removed.
func (r *Reconciler) open(ctx context.Context, s *scope) error {
	quota := types.NamespacedName{Namespace: s.namespace, Name: namespace.ClosedQuota}
	closed, _, err := r.Watch.Live(ctx, corev1.SchemeGroupVersion.WithKind("ResourceQuota"), quota)
	if closed == nil {
		return err
	}
	return namespace.Open(ctx, r.Direct, s.namespace)
}

// removeNamespace deletes the namespace of a deleted Project, which has no apps any more, and waits until it and its contents are gone. It
// keeps the namespace if claims that hold data stay.
func (r *Reconciler) removeNamespace(ctx context.Context, s *scope) error {
	tenant, err := r.formerTenant(ctx, s)
	if err != nil {
		return err
	}
	terms := pvc.TermsOf(s.project, tenant)
	terms.Confirmed = pvc.Confirmed(s.project, tenant)
	if s.ofPlatform() {
		left, err := r.leavePlatformNamespace(ctx, s, terms)
		if err != nil {
			return err
		}
		if left {
			return r.Hosts.Release(ctx, s.hosts(nil))
		}
	} else if err := r.revokeCluster(ctx, s); err != nil {
		return err
	}
	if err := r.awaitNamespace(ctx, s); err != nil {
		return err
	}
	deployer, err := r.Clients.As(s.namespace)
	if err != nil {
		return err
	}
	kinds, err := r.Kinds.List(ctx)
	if err != nil {
		return err
	}
	removal := home.Removal{
		Policy: s.project.Spec.DeletionPolicy, Claims: terms, Deployer: deployer, Kinds: kinds, Grace: namespace.MaxGracePeriod(tenant),
	}
	if err := r.home(s, s.ownedBy(tenant)).Remove(ctx, removal); err != nil {
		return err
	}
	if err := r.release(ctx, s); err != nil {
		return err
	}
	r.Forget(s.namespace)
	return r.Hosts.Release(ctx, s.hosts(nil))
}

// normalRemoval is how long Kubernetes usually takes at most to remove a namespace. Until then nothing asks what holds it.
const normalRemoval = 10 * time.Second

// awaitNamespace waits while the watch shows that the namespace is being deleted and has been for only a short time. The deletion of each object
// in it wakes the project, which would read the namespace some twenty times.
func (r *Reconciler) awaitNamespace(ctx context.Context, s *scope) error {
	live, _, err := r.Applier.Live(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKey{Name: s.namespace})
	if err != nil || live == nil || live.GetDeletionTimestamp() == nil || s.project.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		return err
	}
	if live.GetDeletionTimestamp().Before(s.project.DeletionTimestamp) {
		return nil // Others deleted it, and it may be one of an earlier tenant.
	}
	// The time is the API server's, whose clock may be ahead.
	if left := normalRemoval - r.Steps.Clock.Since(live.GetDeletionTimestamp().Time); left > 0 {
		return step.Wait(v1alpha1.DeletingReason, min(left, normalRemoval), "namespace %s is being deleted", s.namespace)
	}
	return nil
}

// formerTenant returns the project's tenant. If the Tenant was removed by force before its projects, formerTenant reads the tenant's UID
// from the home namespace.
func (r *Reconciler) formerTenant(ctx context.Context, s *scope) (*v1alpha1.Tenant, error) {
	tenant := &v1alpha1.Tenant{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: tenantOf(s.project)}, tenant)
	if err == nil {
		return tenant, nil
	}
	ns := &corev1.Namespace{}
	if apierrors.IsNotFound(err) {
		err = r.Direct.Get(ctx, client.ObjectKey{Name: s.project.Namespace}, ns)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the tenant of project %s: %w", s.project.Name, err)
	}
	tenant.UID = types.UID(ns.Annotations[v1alpha1.TenantUIDAnnotation])
	return tenant, nil
}

// ownedBy returns the owner of the project's namespace.
func (s *scope) ownedBy(tenant *v1alpha1.Tenant) namespace.Owner {
	return namespace.Owner{Labels: s.labels(), Tenant: tenant.UID, Identity: namespace.Identity(tenant)}
}
