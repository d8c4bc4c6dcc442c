package refusal

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// maxPlace bounds, in characters, the file in front of Ready's message.
const maxPlace = 100

// Report is what an object reports about the newest version of it in Git.
type Report struct {
	// Notes are the condition Current and its event: False while a newer version is refused, absent else. There are none while that is
	// not known, so that the condition stays as it is.
	Notes []step.Note
	// Refused is the version that is refused, for the status. It is nil for none.
	Refused *v1alpha1.Refused
}

// Report returns what an object reports. before is what its status has.
func (r *Index) Report(kind string, o step.Object, before *v1alpha1.Refused) Report {
	repository := o.GetLabels()[v1alpha1.RepositoryLabel]
	if r == nil {
		return Report{Refused: before}
	}
	if repository == "" {
		return Report{Notes: []step.Note{{Condition: v1alpha1.CurrentCondition}}}
	}
	refusal, known := r.Of(repository, Unit{Kind: kind, ObjectKey: client.ObjectKeyFromObject(o)})
	switch {
	case !known:
		return Report{Refused: before}
	case refusal == Refusal{}:
		return Report{Notes: []step.Note{current()}}
	}
	return outdated(refusal, before)
}

// outdated reports a newer version that is refused. A problem that was there before the process started keeps the commit with which the
// status names it.
func outdated(refusal Refusal, before *v1alpha1.Refused) Report {
	is := &v1alpha1.Refused{Revision: refusal.Revision, Place: refusal.Place, Problem: refusal.Problem}
	if refusal.found && before != nil && refusal.same(before.Place, before.Problem) {
		is.Revision = before.Revision
	}
	return Report{Refused: is, Notes: []step.Note{{
		Condition: v1alpha1.CurrentCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.InvalidTreeReason,
		Message: is.Revision + " is refused: " + is.Place + ": " + is.Problem, Event: "Warning",
	}}}
}

// current takes the condition away, with an event where it was there.
func current() step.Note {
	return step.Note{
		Condition: v1alpha1.CurrentCondition, Reason: v1alpha1.SucceededReason,
		Message: "no newer version is refused any more", Event: "Normal",
	}
}

// Masked returns the refused version for the status, without the words that mask hides; nil for none.
func (r Report) Masked(mask func(string) string) *v1alpha1.Refused {
	if r.Refused == nil {
		return nil
	}
	return &v1alpha1.Refused{Revision: r.Refused.Revision, Place: mask(r.Refused.Place), Problem: mask(r.Refused.Problem)}
}

// Heading is what is in front of Ready's message while a newer version is refused: where, in short.
func (r Report) Heading() string {
	if r.Refused == nil {
		return ""
	}
	place := r.Refused.Place
	if runes := []rune(place); len(runes) > maxPlace {
		place = "…" + string(runes[len(runes)-maxPlace:])
	}
	return "A newer version is refused at " + place + "; "
}
