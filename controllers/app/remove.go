package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/handover"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// remover removes the objects of deleted Apps.
type remover struct {
	watch     project.Watch
	direct    client.Reader
	deployer  func(namespace string) (client.Client, error)
	engine    *apply.Applier
	events    events.EventRecorder
	recorder  *record.Recorder
	transfers *handover.Transfers
	pruner    *prune.Pruner
	releaser  *releaser
	applier   *applier
}

// remove deletes the objects that the App delivered and waits until they are gone. Under the policy Orphan it deletes nothing. If the whole
// namespace is being deleted, Kubernetes deletes the namespaced objects, and remove deletes only the cluster-scoped ones: the
// ClusterRoleBinding of the deployer outlives the namespace.
func (r *remover) remove(ctx context.Context, s *scope) error {
	live, err := r.namespace(ctx, s.App.Namespace)
	if err != nil {
		return err
	}
	going := live == nil || live.GetDeletionTimestamp() != nil
	if going {
		s.inventory.Entries = record.Outside(s.inventory.Entries, s.App.Namespace)
	}
	if s.App.Spec.DeletionPolicy == v1alpha1.AppDeletionOrphan || going && len(s.inventory.Entries) == 0 || live == nil {
		return nil
	}
	labels := live.GetLabels()
	s.Owner = own.Owner{Tenant: labels[v1alpha1.TenantLabel], Project: labels[v1alpha1.ProjectLabel], App: s.App.Name, Namespace: s.App.Namespace}
	s.PodsRefused = labels[v1alpha1.StoppedLabel] != ""
	if s.Owner.Tenant == "" || s.Owner.Project == "" {
		return step.Wait(v1alpha1.DependencyNotReadyReason, 10*time.Second, "waits for its project to put back the labels of namespace %s", s.App.Namespace)
	}
	if s.Client, err = r.deployer(s.App.Namespace); err != nil {
		return err
	}
	if s.App.Spec.Type == v1alpha1.AppHelm && !going {
		if err := r.releaser.uninstall(ctx, s); err != nil {
			var leaving *fault.Terminating
			return r.freeHeld(ctx, s, err, errors.As(err, &leaving) && leaving.Foreign)
		}
	}
	if held, err := r.removeObjects(ctx, s, going); err != nil {
		return r.freeHeld(ctx, s, err, held)
	}
	return nil
}

// freeHeld returns why the removal waits. If a foreign finalizer holds an object, the error explains how to end that; if administrators
// allowed it, freeHeld removes the finalizer. It checks all objects, not only the few that the message names.
func (r *remover) freeHeld(ctx context.Context, s *scope, why error, held bool) error {
	switch {
	case !step.Waits(why) || !held:
		return why
	case !finalizer.Forced(s.App):
		return step.Add(why, command.ForceRemoval("app", s.App))
	}
	freed, err := garbage.RemoveFinalizers(ctx, s.Client, s.inventory.Entries, s.Labels())
	if len(freed) > 0 {
		r.events.Eventf(s.App, nil, corev1.EventTypeWarning, v1alpha1.RemovalForcedReason, "Remove", "removed finalizers by force: %s", step.Few(freed))
	}
	if err != nil {
		return step.Fail(v1alpha1.PruneFailedReason, prune.FinalizersForbidden(err))
	}
	return why
}

// removeObjects deletes the recorded objects. Protected objects stay unless a person confirmed their deletion, and claims under the policy
// Retain stay even then, so that removing a folder from Git never deletes data. held: a foreign finalizer holds one of the objects.
func (r *remover) removeObjects(ctx context.Context, s *scope, going bool) (held bool, err error) {
	s.outcome.declared = true
	r.recorder.Drop(s.App)
	r.applier.declare(s) // From now on the App declares no objects.
	retain, err := r.pruner.Retains(ctx, s.Subject)
	if err != nil {
		return false, err
	}
	dependents := prune.Dependents(s.Subject)
	if going {
		dependents = nil // The claims are deleted with the namespace, in which the deployer can no longer read.
	}
	removed, err := garbage.Remove(ctx, garbage.Removal{Live: r.engine.Live,
		Client: r.pruner.Sees(s.Subject), Entries: s.inventory.Entries, Owner: s.Labels(), Guarded: true,
		Confirmed: prune.RemovalConfirmed(s.App), Retain: retain, Dependents: dependents,
		Foreground: s.App.Spec.DeletionPolicy == v1alpha1.AppDeletionWaitForTermination,
		Wanted:     r.transfers.Search(s.Subject, "").Wanted,
	})
	s.inventory = inventory.Join(removed.Left, removed.Kept) // Kept objects stay recorded, so that one event reports them all in the end.
	if err != nil {
		return false, step.Fail(v1alpha1.PruneFailedReason, prune.Forbidden(err, "; to let go of it, "+command.Set(s.App, "deletionPolicy", string(v1alpha1.AppDeletionOrphan))))
	}
	if err := prune.AwaitGone(s.Subject, v1alpha1.DeletingReason, removed.Leaving); err != nil {
		return slices.ContainsFunc(removed.Leaving, finalizer.Terminating.Foreign), err
	}
	if len(removed.Wanted) > 0 {
		return false, step.Wait(v1alpha1.DeletingReason, r.transfers.NextLook(s.Subject), "leaves %s, and waits until that is taken over", step.Few(removed.Wanted))
	}
	r.pruner.ReportKept(ctx, s.App, inventory.Join(removed.Kept, removed.Held).Entries, "are protected from deletion")
	return false, nil
}

// namespace returns the App's namespace, or nil if it does not exist. The watch does not show a namespace without labels, so such a
// namespace is read from the API server.
func (r *remover) namespace(ctx context.Context, name string) (metav1.Object, error) {
	if live, err := r.watch.Namespace(ctx, name); live != nil || err != nil {
		return live, err
	}
	live := &corev1.Namespace{}
	err := r.direct.Get(ctx, client.ObjectKey{Name: name}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return live, nil
}
