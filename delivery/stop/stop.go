// Package stop ends the pods of a namespace and keeps everything else, and undoes that.
//
// A quota of no pods holds new pods off, whether kubeop runs or not. Jobs that run are suspended and labelled, so that Kubernetes ends their
// pods without counting a failure. Of the other pods only those are deleted that are made again afterwards: by the controller that owns
// them, or by their App. No spec but that of Jobs changes, so afterwards nothing has to be restored from a record.
package stop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/condition"
)

// Quota is the name of the ResourceQuota that admits no pods. It exists from the stop until everything is resumed.
const Quota = "kubeop-stopped"

// manager is the field manager of what is changed in the tenant's objects.
const manager = client.FieldOwner("kubeop-stop")

// Closed returns the quota that admits no pods.
func Closed(namespace string, labels map[string]string) *core.ResourceQuotaApplyConfiguration {
	return core.ResourceQuota(Quota, namespace).WithLabels(labels).
		WithSpec(core.ResourceQuotaSpec().WithHard(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}))
}

// Namespace is a namespace to stop or to resume.
type Namespace struct {
	Name string
	// Reader must not read from a cache, because it has to see the pods, Jobs and workloads of everyone.
	Reader client.Reader
	// Writer deletes pods and patches Jobs and workloads.
	Writer client.Client
}

// Report says what still runs in a namespace.
type Report struct {
	// Ending are the names of the pods that are about to end.
	Ending []string
	// Left are the names of the pods that stay, because nothing would make them again.
	Left []string
}

// Stop ends what runs, as far as it is made again when the namespace is resumed. remade reports whether an App makes a pod of that name
// again. Errors are joined: one object that cannot be changed does not keep the others running.
func (n Namespace) Stop(ctx context.Context, remade func(pod string) bool) (Report, error) {
	failed := []error{n.suspendJobs(ctx)}
	pods := &corev1.PodList{}
	if err := n.Reader.List(ctx, pods, client.InNamespace(n.Name)); err != nil {
		return Report{}, errors.Join(append(failed, fmt.Errorf("listing the pods of namespace %s: %w", n.Name, err))...)
	}
	var r Report
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		owner := metav1.GetControllerOf(pod)
		switch {
		case pod.DeletionTimestamp != nil, owner != nil && owner.Kind == "Job": // The controller of a suspended Job ends its pods.
			r.Ending = append(r.Ending, pod.Name)
		case owner != nil, remade(pod.Name):
			r.Ending = append(r.Ending, pod.Name)
			failed = append(failed, n.end(ctx, pod))
		default:
			r.Left = append(r.Left, pod.Name)
		}
	}
	slices.Sort(r.Ending)
	slices.Sort(r.Left)
	return r, errors.Join(failed...)
}

// end deletes a pod with its grace period, if it is still the one that was read.
func (n Namespace) end(ctx context.Context, pod *corev1.Pod) error {
	uid := pod.UID
	err := n.Writer.Delete(ctx, pod, client.Preconditions{UID: &uid})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("ending pod %s: %w", pod.Name, err)
}

// suspendJobs suspends the Jobs that run. A Job that is suspended already stays without the label, so that it stays suspended afterwards.
func (n Namespace) suspendJobs(ctx context.Context) error {
	jobs, err := n.jobs(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for i := range jobs {
		job := &jobs[i]
		ended, _, _ := condition.JobEnded(job)
		suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
		if !ended && !suspended && job.GetDeletionTimestamp() == nil {
			failed = append(failed, n.suspend(ctx, job, true))
		}
	}
	return errors.Join(failed...)
}

// jobs lists the Jobs of the namespace.
func (n Namespace) jobs(ctx context.Context, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	jobs := &unstructured.UnstructuredList{}
	jobs.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("JobList"))
	if err := n.Reader.List(ctx, jobs, append(options, client.InNamespace(n.Name))...); err != nil {
		return nil, fmt.Errorf("listing the Jobs of namespace %s: %w", n.Name, err)
	}
	return jobs.Items, nil
}

// suspend suspends a Job with the label, or resumes it and removes the label, if it is still as it was read. Otherwise the next look decides.
func (n Namespace) suspend(ctx context.Context, job *unstructured.Unstructured, suspend bool) error {
	label := "null"
	if suspend {
		label = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"labels":{%q:%s}},"spec":{"suspend":%t}}`, job.GetResourceVersion(), v1alpha1.StoppedLabel, label, suspend)
	err := n.Writer.Patch(ctx, job, client.RawPatch(types.MergePatchType, []byte(patch)), manager)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	act := "resuming"
	if suspend {
		act = "suspending"
	}
	return fmt.Errorf("%s Job %s: %w", act, job.GetName(), err)
}
