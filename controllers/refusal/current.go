package refusal

import (
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
)

// maxPlace limits the length of the file's name in Ready's message, in characters.
const maxPlace = 100

// Report is what an object reports about its newest version in Git.
type Report struct {
	// Notes hold the condition Current and its event. Current is False while a newer version is refused, and absent otherwise. If it is
	// unknown whether a version is refused, there are no notes, so the condition stays as it is.
	Notes []step.Note
	// Refused is the refused version, for the status; nil for none.
	Refused *v1alpha1.Refused
}

// Report returns the report of an object. before is the refused version in the object's status.
func (r *Index) Report(kind string, o step.Object, before *v1alpha1.Refused) Report {
	repository := o.GetLabels()[v1alpha1.RepositoryLabel]
	if r == nil {
		return Report{Refused: before}
	}
	if repository == "" {
		return Report{Notes: []step.Note{{Condition: v1alpha1.CurrentCondition}}}
	}
	unit := Unit{Kind: kind, ObjectKey: client.ObjectKeyFromObject(o)}
	refusal, known := r.Of(repository, unit)
	switch {
	case !known:
		if conditions.Has(o, v1alpha1.CurrentCondition) {
			r.wakeOnceRead(repository, unit)
		}
		return Report{Refused: before}
	case refusal == Refusal{}:
		return Report{Notes: []step.Note{current()}}
	}
	return outdated(refusal, before)
}

// outdated reports a refused newer version. If the status already reported the same problem before this process started, the status keeps
// the commit that it named.
func outdated(refusal Refusal, before *v1alpha1.Refused) Report {
	is := &v1alpha1.Refused{Revision: refusal.Revision, Place: refusal.Place, Problem: refusal.Problem}
	if refusal.found && before != nil && refusal.same(before.Place, before.Problem) {
		is.Revision = before.Revision
	}
	return Report{Refused: is, Notes: []step.Note{{
		Condition: v1alpha1.CurrentCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.InvalidTreeReason,
		Message: few.ShortRevision(is.Revision) + " is refused: " + is.Place + ": " + is.Problem, Event: "Warning",
	}}}
}

// current removes the condition. There is an event if the object had the condition.
func current() step.Note {
	return step.Note{
		Condition: v1alpha1.CurrentCondition, Reason: v1alpha1.SucceededReason,
		Message: "no newer version is refused any more", Event: "Normal",
	}
}

// Masked returns the refused version for the status, with secrets masked; nil for none.
func (r Report) Masked(mask func(string) string) *v1alpha1.Refused {
	if r.Refused == nil {
		return nil
	}
	return &v1alpha1.Refused{Revision: r.Refused.Revision, Place: mask(r.Refused.Place), Problem: mask(r.Refused.Problem)}
}

// Heading is the beginning of Ready's message while a newer version is refused; it names the file.
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
