package pullrequest

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
)

// trouble is what the Git host refuses, and how many times in a row.
type trouble struct {
	err   error
	times int
}

// patience is how many failures in a row of a Git host that does not answer are reported nowhere, because most end by themselves.
const patience = 3

// reported reports whether a trouble is shown in the status.
func (t trouble) reported() bool {
	_, final := verdict.Of(t.err)
	return t.err != nil && (final || t.times >= patience)
}

// trouble records the answer of the Git host about a pull request, or with 0 about the list of them.
func (rec *record) trouble(number int, err error) {
	if err == nil {
		delete(rec.troubles, number)
		return
	}
	rec.troubles[number] = trouble{err, rec.troubles[number].times + 1}
}

// note returns the condition PlanCommentFailed. It stays as it is until it is known whether what failed still does.
func (rec *record) note() step.Note {
	note := step.Note{Condition: v1alpha1.PlanCommentFailedCondition}
	for _, number := range slices.Sorted(maps.Keys(rec.troubles)) {
		t := rec.troubles[number]
		if !t.reported() {
			continue
		}
		note.Status, note.Event = metav1.ConditionTrue, corev1.EventTypeWarning
		note.Reason, _ = verdict.Of(t.err)
		note.Message = t.err.Error() + "; commits are applied all the same"
		return note
	}
	if !rec.answered || len(rec.asked) > 0 {
		return step.Stays(note.Condition)
	}
	return note
}
