package project

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/stop"
)

// whileStopped is the pause between two looks at a namespace in which nothing runs. Without the admission policies a CronJob makes Jobs meanwhile.
// whileLeft is that pause while pods run on that somebody has to delete.
const (
	whileStopped = time.Minute
	whileLeft    = 10 * time.Second
)

// stop ends the pods of the project while administrators stop the tenant, and resumes them afterwards. Whether something was stopped is known from
// the quota, so an operator that was ended in between goes on. Once the quota is written, a failure does not keep the later steps from guarding the
// namespace.
func (r *Reconciler) stop(ctx context.Context, s *scope) error {
	s.stopped.note = step.Note{Condition: v1alpha1.StoppedCondition}
	live, _, err := r.Watch.Live(ctx, corev1.SchemeGroupVersion.WithKind("ResourceQuota"), types.NamespacedName{Namespace: s.namespace, Name: stop.Quota})
	if err != nil || live == nil && !s.tenant.Spec.Stopped {
		return err
	}
	deployer, err := r.Clients.As(s.namespace)
	if err != nil {
		return err
	}
	at := stop.Namespace{Name: s.namespace, Reader: r.Direct, Writer: deployer}
	if !s.tenant.Spec.Stopped {
		return r.resume(ctx, s, at)
	}
	closed := stop.Closed(s.namespace, s.labels())
	if err := s.made.Apply(ctx, closed); err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
	}
	remade, err := r.remade(ctx, s)
	if err != nil {
		return step.GoOn(err)
	}
	report, err := at.Stop(ctx, remade)
	s.stopped = halt{home.StoppedBy(s.tenant, s.namespace, report), whileStopped}
	if len(report.Left) > 0 {
		s.stopped.again = whileLeft
	}
	if len(report.Ending) > 0 || live == nil { // Pods that were made before the quota was in force are ended by the next look.
		s.stopped.again = step.NextLook(r.stoppedFor(live))
	}
	if err != nil {
		return step.GoOn(step.Fail(v1alpha1.FailedReason, err))
	}
	return nil
}

// stoppedFor returns how long ago the quota was made; 0 if it is new.
func (r *Reconciler) stoppedFor(quota metav1.Object) time.Duration {
	if quota == nil {
		return 0
	}
	return r.Steps.Clock.Now().Sub(quota.GetCreationTimestamp().Time)
}

// remade returns a function that reports whether an App of the project makes a pod of a name again: one that the App applied without a workload, and
// that drift correction puts back.
func (r *Reconciler) remade(ctx context.Context, s *scope) (func(pod string) bool, error) {
	apps := &v1alpha1.AppList{}
	if err := r.Client.List(ctx, apps, client.InNamespace(s.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range apps.Items {
		app := &apps.Items[i]
		if app.Spec.Type == v1alpha1.AppHelm || app.Spec.DriftMode() != v1alpha1.DriftCorrect || app.Spec.Suspend || app.DeletionTimestamp != nil ||
			v1alpha1.SuspendedUntil(app).After(r.Steps.Clock.Now()) {
			continue
		}
		for _, e := range app.Status.Inventory.Entries {
			if id, err := inventory.ParseObjectID(e.ID); err == nil && id.Group == "" && id.Kind == "Pod" && !e.Stale {
				names[id.Name] = true
			}
		}
	}
	return func(pod string) bool { return names[pod] }, nil
}

// resume undoes stop. The quota is deleted last, because it is the record that something is still to be resumed.
func (r *Reconciler) resume(ctx context.Context, s *scope, stopped stop.Namespace) error {
	now := r.Steps.Clock.Now()
	open, at, err := stop.Open(ctx, r.Direct, s.namespace, s.labels(), now)
	if open == nil {
		return err // Without a quota, the watch does not show yet that it is gone.
	}
	if err := s.made.Apply(ctx, open); err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
	}
	s.stopped.note.Status, s.stopped.note.Reason = metav1.ConditionUnknown, v1alpha1.ResumingReason
	s.stopped.note.Message, s.stopped.again = "pods are admitted again, and what was stopped is resumed", time.Second
	done, err := stopped.Resume(ctx, at, now)
	if err != nil {
		return step.GoOn(step.Fail(v1alpha1.FailedReason, err))
	}
	if !done {
		return nil
	}
	s.stopped = halt{note: step.Note{Condition: v1alpha1.StoppedCondition}}
	entry := v1alpha1.InventoryEntry{ID: inventory.ObjectID{Namespace: s.namespace, Name: stop.Quota, Kind: "ResourceQuota"}.String(), Version: "v1"}
	return s.made.Remove(ctx, s.labels(), entry)
}
