package stop

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// minResume is how long a resume takes at least: the API server enforces a quota by its status, which follows the spec after a moment, so a
// controller that was woken at once may be refused once more. maxResume is how long it takes at most: a controller that makes no pods by then
// is refused by something else, such as the project's own quota.
const (
	minResume = 3 * time.Second
	maxResume = 30 * time.Second
)

// Open returns the quota that admits pods again and says since when, and that time: now, unless the quota says so already. The quota stays as a
// record that a resume is under way, until its caller deletes it. Without a quota nothing is to be resumed, and Open returns nil.
func Open(ctx context.Context, reader client.Reader, namespace string, labels map[string]string, now time.Time) (*core.ResourceQuotaApplyConfiguration, time.Time, error) {
	quota := &corev1.ResourceQuota{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Quota}, quota)
	if apierrors.IsNotFound(err) {
		return nil, now, nil
	}
	if err != nil {
		return nil, now, fmt.Errorf("reading quota %s of namespace %s: %w", Quota, namespace, err)
	}
	at, err := time.Parse(time.RFC3339, quota.Annotations[v1alpha1.ResumedAtAnnotation])
	if err != nil {
		at = now.UTC().Truncate(time.Second)
	}
	return core.ResourceQuota(Quota, namespace).WithLabels(labels).WithSpec(core.ResourceQuotaSpec()).
		WithAnnotations(map[string]string{v1alpha1.ResumedAtAnnotation: at.Format(time.RFC3339)}), at, nil
}

// Resume resumes the Jobs that Stop suspended, and wakes the controllers that have not made pods since, whose pauses have grown to minutes. at is
// when Open opened the quota. It returns whether that is done; otherwise it has to be called again after a second.
func (n Namespace) Resume(ctx context.Context, at, now time.Time) (done bool, err error) {
	jobs, err := n.jobs(ctx, client.MatchingLabels{v1alpha1.StoppedLabel: "true"})
	if err != nil {
		return false, err
	}
	var failed []error
	for i := range jobs {
		failed = append(failed, n.suspend(ctx, &jobs[i], false))
	}
	all, err := n.workloads(ctx)
	if err != nil {
		return false, errors.Join(append(failed, err)...)
	}
	waits := false
	for _, w := range all {
		waits = waits || w.waits
	}
	passed := now.Sub(at).Abs() // A clock that was set back ends it, too.
	done = len(jobs) == 0 && (passed >= maxResume || passed >= minResume && !waits)
	for _, w := range all {
		failed = append(failed, n.wake(ctx, w, now, done))
	}
	err = errors.Join(failed...)
	return done && err == nil, err
}

// workload is an object whose controller makes pods.
type workload struct {
	client.Object
	// waits: it has none of the pods that it wants.
	waits bool
}

// workloads lists the workloads of the namespace.
func (n Namespace) workloads(ctx context.Context) ([]workload, error) {
	sets, stateful, daemons := &appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}
	for _, list := range []client.ObjectList{sets, stateful, daemons} {
		if err := n.Reader.List(ctx, list, client.InNamespace(n.Name)); err != nil {
			return nil, fmt.Errorf("listing the workloads of namespace %s: %w", n.Name, err)
		}
	}
	var all []workload
	for i := range sets.Items {
		o := &sets.Items[i]
		all = append(all, workload{o, wants(o.Spec.Replicas) && o.Status.Replicas == 0})
	}
	for i := range stateful.Items {
		o := &stateful.Items[i]
		all = append(all, workload{o, wants(o.Spec.Replicas) && o.Status.Replicas == 0})
	}
	for i := range daemons.Items {
		o := &daemons.Items[i]
		all = append(all, workload{o, o.Status.DesiredNumberScheduled > 0 && o.Status.CurrentNumberScheduled == 0})
	}
	return all, nil
}

func wants(replicas *int32) bool { return replicas == nil || *replicas > 0 }

// wake makes the controller of a workload look at it at once: it does so at any change, such as that of an annotation. In the end the
// annotation is removed, so nothing of it stays.
func (n Namespace) wake(ctx context.Context, w workload, now time.Time, done bool) error {
	value := fmt.Sprintf("%q", now.UTC().Format(time.RFC3339Nano))
	_, woken := w.GetAnnotations()[v1alpha1.WokenAnnotation]
	switch {
	case done && !woken, !done && !w.waits:
		return nil
	case done:
		value = "null"
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.WokenAnnotation, value)
	if err := n.Writer.Patch(ctx, w.Object, client.RawPatch(types.MergePatchType, []byte(patch)), manager); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("waking the controller of %s: %w", w.GetName(), err)
	}
	return nil
}
