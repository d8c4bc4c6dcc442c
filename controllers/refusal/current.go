package refusal

import (
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

const (
	// refused stands between the revision and the problem in the condition's message.
	refused = " is refused: "
	// maxPlace bounds, in characters, the file in front of Ready's message.
	maxPlace = 100
)

// Notes are the condition Current of an object: False while a newer version of it is refused, absent else. They are none while
// that is not known, so that the condition stays as it is.
func (r *Registry) Notes(kind string, o step.Object) []step.Note {
	repository := o.GetLabels()[v1alpha1.RepositoryLabel]
	if r == nil {
		return nil
	}
	if repository == "" {
		return []step.Note{{Condition: v1alpha1.CurrentCondition}}
	}
	refusal, known := r.Of(repository, Unit{Kind: kind, ObjectKey: client.ObjectKeyFromObject(o)})
	switch {
	case !known:
		return nil
	case refusal == Refusal{}:
		return []step.Note{current()}
	}
	return []step.Note{outdated(refusal, conditions.GetMessage(o, v1alpha1.CurrentCondition))}
}

// outdated is the condition, with its event, while a newer version is refused. A problem that was there before the process started keeps
// the commit with which the condition names it, which is the message before.
func outdated(refusal Refusal, before string) step.Note {
	message := refusal.Revision + refused + refusal.Problem
	if _, problem, _ := strings.Cut(before, refused); refusal.found && problem == refusal.Problem {
		message = before
	}
	return step.Note{
		Condition: v1alpha1.CurrentCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.InvalidTreeReason,
		Message: message, Event: "Warning",
	}
}

// current takes the condition away, with an event where it was there.
func current() step.Note {
	return step.Note{
		Condition: v1alpha1.CurrentCondition, Reason: v1alpha1.SucceededReason,
		Message: "no newer version is refused any more", Event: "Normal",
	}
}

// Heading is what stands in front of Ready's message while the condition says that a newer version is refused: where, in
// short. notes are those of the object.
func Heading(o step.Object, notes []step.Note) string {
	message := conditions.GetMessage(o, v1alpha1.CurrentCondition)
	for _, n := range notes {
		if n.Condition == v1alpha1.CurrentCondition {
			message = ""
			if n.Status == metav1.ConditionFalse {
				message = n.Message
			}
		}
	}
	_, problem, is := strings.Cut(message, refused)
	if !is {
		return ""
	}
	place, _, _ := strings.Cut(problem, ": ")
	if runes := []rune(place); len(runes) > maxPlace {
		place = "…" + string(runes[len(runes)-maxPlace:])
	}
	return "A newer version is refused at " + place + "; "
}
