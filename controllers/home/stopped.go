package home

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/delivery/stop"
)

// StoppedHeading returns the words with which the message of Ready of a Tenant or a Project begins while administrators stop the tenant; "" if they
// do not.
func StoppedHeading(tenant *v1alpha1.Tenant) string {
	if !tenant.Spec.Stopped {
		return ""
	}
	return "Stopped by administrators; "
}

// StoppedBy returns the condition of a Project of a tenant that administrators stopped.
func StoppedBy(tenant *v1alpha1.Tenant, namespace string, report stop.Report) step.Note {
	note := step.Note{Condition: v1alpha1.StoppedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.StoppedReason}
	until := fmt.Sprintf("no pod is admitted in namespace %s %s", namespace, freeze.Stopped(tenant))
	note.Message = "nothing runs, and " + until
	if len(report.Ending) > 0 {
		note.Status, note.Reason = metav1.ConditionUnknown, v1alpha1.StoppingReason
		note.Message = fmt.Sprintf("waits for %s to end: %s; %s", few.Count(len(report.Ending), "pod"), step.Few(report.Ending), until)
	}
	if len(report.Left) > 0 {
		note.Status, note.Reason = metav1.ConditionFalse, v1alpha1.StillRunningReason
		note.Message = fmt.Sprintf("kubeop leaves %s running, which nothing would make again: %s; an owner of tenant %s with the role edit may delete one with "+
			"kubectl delete pod -n %s <pod>, or replace it by a Deployment in Git; %s",
			few.Count(len(report.Left), "pod"), step.Few(report.Left), tenant.Name, namespace, until)
	}
	return note
}
