package notice

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// Volumes are facts about the claims of an App.
type Volumes struct {
	// Retained are StatefulSets that are changed so that they keep their claims. LastRetained names those of the last event about this.
	Retained     []string
	LastRetained *string
	// empty says which volumes start empty although an older claim for them exists; "" for none. claims are the empty ones. known: the claims were
	// looked at.
	empty  string
	claims []string
	known  bool
}

// Found records which volumes start empty although older claims for them exist, as a text for the condition, "" for none, and the names of the empty claims
// that are to be checked again as long as these exist.
func (v *Volumes) Found(empty string, claims []string) {
	v.empty, v.claims, v.known = empty, claims, true
}

// Record writes the claims that started empty into the status. It leaves them as they are if this Reconcile did not look at the claims.
func (v *Volumes) Record(app *v1alpha1.App) {
	if v.known || app.Spec.Image == nil {
		app.Status.StartedEmpty = v.claims
	}
}

// startedEmpty is the condition StartedEmpty. It stays while the claims were not looked at, as in a Reconcile that waits for a dependency.
func (v *Volumes) startedEmpty() step.Note {
	note := step.Note{Condition: v1alpha1.StartedEmptyCondition}
	switch {
	case !v.known:
		return step.Stays(note.Condition)
	case v.empty != "":
		note.Status, note.Reason, note.Message, note.Event = metav1.ConditionTrue, v1alpha1.ClaimLeftBehindReason, v.empty, corev1.EventTypeWarning
	}
	return note
}

// Notes report volumes that start empty, and, once, the StatefulSets that were changed so that they keep their claims. built: the objects of the App are
// known.
func (v *Volumes) Notes(app *v1alpha1.App, built bool) []step.Note {
	var notes []step.Note
	if app.Spec.Image != nil {
		notes = append(notes, v.startedEmpty())
	}
	retained := strings.Join(v.Retained, ", ")
	if app.Spec.Helm != nil || !built || retained == *v.LastRetained {
		return notes
	}
	if *v.LastRetained = retained; retained == "" {
		return notes
	}
	return append(notes, step.Note{Reason: v1alpha1.ClaimsRetainedReason, Event: corev1.EventTypeWarning, Message: fmt.Sprintf(
		"StatefulSet %s is delivered with persistentVolumeClaimRetentionPolicy Retain, for both fields: no claim is deleted without a confirmation; write Retain in Git to end this message", retained)})
}
