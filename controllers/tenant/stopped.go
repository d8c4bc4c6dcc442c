package tenant

import (
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/freeze"
)

// stopped returns the condition Stopped of the tenant: the worst of its projects', and that nothing runs if it is True for all of them.
func (s *scope) stopped() step.Note {
	projects := map[string][]string{}
	messages := map[string]string{}
	for i := range s.declared.Items {
		project := &s.declared.Items[i]
		c := conditions.Get(project, v1alpha1.StoppedCondition)
		reason := v1alpha1.ResumingReason // Also that of a project which was not looked at yet.
		if c != nil {
			reason, messages[c.Reason] = c.Reason, c.Message
		}
		if c != nil || s.tenant.Spec.Stopped {
			projects[reason] = append(projects[reason], project.Name)
		}
	}
	for _, names := range projects {
		slices.Sort(names)
	}
	return s.stoppedNote(projects, messages)
}

// stoppedNote is the condition Stopped, by the projects of each reason and a message of one of them.
func (s *scope) stoppedNote(projects map[string][]string, messages map[string]string) step.Note {
	note := step.Note{Condition: v1alpha1.StoppedCondition, Status: metav1.ConditionUnknown}
	// Only the reason says whether a project with status Unknown stops or resumes. Projects have no field for it.
	left, ending, other := projects[v1alpha1.StillRunningReason], projects[v1alpha1.StoppingReason], projects[v1alpha1.ResumingReason]
	switch {
	case !s.tenant.Spec.Stopped && len(projects) == 0:
		note.Status = ""
	case !s.tenant.Spec.Stopped:
		all := slices.Concat(left, ending, other, projects[v1alpha1.StoppedReason])
		slices.Sort(all)
		note.Reason, note.Message = v1alpha1.ResumingReason, "resumes projects "+step.Few(all)
	case len(left) > 0:
		note.Status, note.Reason = metav1.ConditionFalse, v1alpha1.StillRunningReason
		note.Message = fmt.Sprintf("projects %s: %s", step.Few(left), messages[note.Reason])
	case len(ending) > 0:
		note.Reason, note.Message = v1alpha1.StoppingReason, fmt.Sprintf("projects %s: %s", step.Few(ending), messages[v1alpha1.StoppingReason])
	case len(other) > 0:
		note.Reason, note.Message = v1alpha1.StoppingReason, "stops projects "+step.Few(other)
	default:
		note.Status, note.Reason, note.Event = metav1.ConditionTrue, v1alpha1.StoppedReason, corev1.EventTypeNormal
		note.Message = fmt.Sprintf("nothing of tenant %s runs, and no pod of it is admitted %s", s.tenant.Name, freeze.Stopped(s.tenant))
	}
	return note
}

// stoppedChanged passes updates of Projects that change their condition Stopped.
var stoppedChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := conditions.Get(e.ObjectOld.(*v1alpha1.Project), v1alpha1.StoppedCondition), conditions.Get(e.ObjectNew.(*v1alpha1.Project), v1alpha1.StoppedCondition)
		if was == nil || is == nil {
			return was != is
		}
		return was.Reason != is.Reason || was.Status != is.Status
	},
}
