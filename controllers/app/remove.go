package app

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
)

// remove deletes what the app delivered and waits until it is gone. It leaves everything under the policy Orphan, and
// leaves it to Kubernetes where the whole namespace is going, but for what is cluster-scoped: its deployer is named there by
// its ClusterRoleBinding, which outlives the namespace.
func (r *Reconciler) remove(ctx context.Context, s *scope) error {
	live, err := r.namespace(ctx, s.app.Namespace)
	if err != nil {
		return err
	}
	going := live == nil || live.GetDeletionTimestamp() != nil
	if going {
		s.inventory.Entries = clusterScoped(s.inventory.Entries)
	}
	if s.app.Spec.DeletionPolicy == v1alpha1.AppDeletionOrphan || going && len(s.inventory.Entries) == 0 || live == nil {
		r.forget(s)
		return nil
	}
	labels := live.GetLabels()
	s.owner = own.Owner{Tenant: labels[v1alpha1.TenantLabel], Project: labels[v1alpha1.ProjectLabel], App: s.app.Name, Namespace: s.app.Namespace}
	if s.owner.Tenant == "" || s.owner.Project == "" {
		return step.Wait(v1alpha1.DependencyNotReadyReason, 10*time.Second, "waits for its project to put back the labels of namespace %s", s.app.Namespace)
	}
	if s.client, err = r.Clients.As(s.app.Namespace); err != nil {
		return err
	}
	if s.app.Spec.Type == v1alpha1.AppHelm && !going {
		if err := r.uninstallWithoutData(ctx, s); err != nil {
			return r.held(ctx, s, err)
		}
	}
	if err := r.removeObjects(ctx, s, going); err != nil {
		return r.held(ctx, s, err)
	}
	r.forget(s)
	return nil
}

// held returns why the removal waits. Where a foreign finalizer holds an object, it says how to end that or, where administrators said
// so, ends it.
func (r *Reconciler) held(ctx context.Context, s *scope, why error) error {
	switch {
	case !step.Waits(why) || !finalizer.Held(why.Error()):
		return why
	case !finalizer.Forced(s.app):
		return step.Add(why, finalizer.How("app", s.app))
	}
	freed, err := r.Applier.Free(ctx, s.client, s.inventory.Entries, ownerLabels(s.owner))
	if len(freed) > 0 {
		r.Steps.Events.Eventf(s.app, nil, corev1.EventTypeWarning, v1alpha1.RemovalForcedReason, "Remove", "took finalizers: %s", finalizer.Names(freed))
	}
	if err != nil {
		return step.Fail(v1alpha1.PruneFailedReason, forbidden(err, ", or take its finalizers off yourself"))
	}
	return why
}

// removeObjects deletes what is recorded. What is protected stays, unless somebody confirmed that it goes, too, and claims under
// the policy Retain even then: taking a folder out of Git costs no data.
func (r *Reconciler) removeObjects(ctx context.Context, s *scope, going bool) error {
	s.declared, s.memory.inventory = true, nil
	r.said(s) // It declares nothing any more.
	retain, err := r.retains(ctx, s)
	if err != nil {
		return err
	}
	dependents := s.dependents()
	if going {
		dependents = nil // The claims go, or their volumes stay, with the namespace, where the deployer may look no more.
	}
	removed, err := r.Applier.Remove(ctx, apply.Removal{
		Client: r.sees(s), Entries: s.inventory.Entries, Owner: ownerLabels(s.owner), Guarded: true,
		Confirmed: removalConfirmed(s.app), Retain: retain, Dependents: dependents,
		Foreground: s.app.Spec.DeletionPolicy == v1alpha1.AppDeletionWaitForTermination,
		Wanted:     r.wanted(s),
	})
	s.inventory = inventory.Join(removed.Left, removed.Kept) // All that is kept is told of at once, in the end.
	if err != nil {
		return step.Fail(v1alpha1.PruneFailedReason, forbidden(err, ", or set deletionPolicy: Orphan in the App to let go of it"))
	}
	if err := r.leaving(s, v1alpha1.DeletingReason, removed.Leaving); err != nil {
		return err
	}
	if len(removed.Wanted) > 0 {
		now := r.Clock.Now()
		again := nextWord(now.Sub(s.memory.began("taken over", now)), s.app.Spec.Within()-now.Sub(s.app.DeletionTimestamp.Time))
		return step.Wait(v1alpha1.DeletingReason, again, "leaves %s, and waits until that is taken over", describe(removed.Wanted))
	}
	r.tellKept(ctx, s.app, inventory.Join(removed.Kept, removed.Held).Entries, "are protected from deletion")
	return nil
}

// namespace returns the app's namespace, or nil when there is none. One that the watch does not show may have lost its labels.
func (r *Reconciler) namespace(ctx context.Context, name string) (metav1.Object, error) {
	if live, err := r.Watch.Namespace(ctx, name); live != nil || err != nil {
		return live, err
	}
	live := &corev1.Namespace{}
	err := r.Direct.Get(ctx, client.ObjectKey{Name: name}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return live, nil
}

// forget drops what is remembered of the app.
func (r *Reconciler) forget(s *scope) {
	r.memory.forget(s.app)
	r.Journal.Forget(s.app.UID)
	r.claims.forget(s.app)
	r.wakeWaiting(s.app)
	r.unfollow(r.references.set(client.ObjectKeyFromObject(s.app), nil))
	r.dependents.set(client.ObjectKeyFromObject(s.app), nil)
	r.Sources.forget(s.app.UID)
	r.builders.Forget(string(s.app.UID))
	r.Builder.Forget(client.ObjectKeyFromObject(s.app))
	r.reads.Delete(client.ObjectKeyFromObject(s.app))
	r.unserved.Delete(client.ObjectKeyFromObject(s.app))
}
