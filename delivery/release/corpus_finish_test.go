package release

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

func adminClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// endsLabel says how a Job or Pod of a chart ends: "well" or "badly". There is no node to run them, and spec.managedBy or
// spec.schedulerName keeps Kubernetes' own controllers away.
const endsLabel = "ends"

// finish ends Jobs and Pods as soon as they exist.
func finish(ctx context.Context, admin kubernetes.Interface) {
	which := metav1.ListOptions{LabelSelector: endsLabel}
	for ctx.Err() == nil {
		jobs, err := admin.BatchV1().Jobs("").Watch(ctx, which)
		if err != nil {
			continue
		}
		pods, err := admin.CoreV1().Pods("").Watch(ctx, which)
		if err != nil {
			jobs.Stop()
			continue
		}
		finishSeen(ctx, admin, jobs, pods)
		jobs.Stop()
		pods.Stop()
	}
}

func finishSeen(ctx context.Context, admin kubernetes.Interface, jobs, pods watch.Interface) {
	for {
		var event watch.Event
		var ok bool
		select {
		case event, ok = <-jobs.ResultChan():
		case event, ok = <-pods.ResultChan():
		}
		if !ok {
			return
		}
		if event.Type != watch.Added {
			continue
		}
		// An object that is already deleted needs no end; any other error shows as a hook that does not end.
		switch o := event.Object.(type) {
		case *batchv1.Job:
			o.Status = jobEnd(o.Labels[endsLabel] == "well")
			_, _ = admin.BatchV1().Jobs(o.Namespace).UpdateStatus(ctx, o, metav1.UpdateOptions{})
		case *corev1.Pod:
			o.Status.Phase = corev1.PodFailed
			if o.Labels[endsLabel] == "well" {
				o.Status.Phase = corev1.PodSucceeded
			}
			_, _ = admin.CoreV1().Pods(o.Namespace).UpdateStatus(ctx, o, metav1.UpdateOptions{})
		}
	}
}

func jobEnd(well bool) batchv1.JobStatus {
	now := metav1.NewTime(time.Now())
	condition := func(kind batchv1.JobConditionType) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: "Corpus"}
	}
	status := batchv1.JobStatus{StartTime: &now, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
	if !well {
		status.Failed = 1
		status.Conditions = []batchv1.JobCondition{condition(batchv1.JobFailureTarget), condition(batchv1.JobFailed)}
		return status
	}
	status.Succeeded, status.CompletionTime = 1, &now
	status.Conditions = []batchv1.JobCondition{condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)}
	return status
}
