package home

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/freeze"
)

// Frozen returns the condition of a Tenant or a Project that says that administrators froze the tenant, and the words with which the message of
// Ready begins then; "" if they did not.
func Frozen(tenant *v1alpha1.Tenant) (note step.Note, heading string) {
	note = step.Note{Condition: v1alpha1.FrozenCondition}
	hold := freeze.ByAdministrators(tenant)
	if hold == nil {
		return note, ""
	}
	note.Status, note.Reason = metav1.ConditionTrue, v1alpha1.FrozenReason
	note.Message = fmt.Sprintf("only administrators of the cluster change anything of tenant %s, %s", tenant.Name, hold)
	if revision := tenant.Annotations[v1alpha1.RevisionAnnotation]; revision != "" {
		note.Message += "; that file is of " + revision
	}
	return note, "Frozen by administrators; "
}
