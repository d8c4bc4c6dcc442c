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
	// Empty says which volumes start empty although an older claim for them exists; "" for none.
	Empty string
}

// Notes report volumes that start empty, and, once, the StatefulSets that were changed so that they keep their claims. built: the objects of the App are
// known.
func (v *Volumes) Notes(app *v1alpha1.App, built bool) []step.Note {
	var notes []step.Note
	if app.Spec.Image != nil {
		empty := step.Note{Condition: v1alpha1.StartedEmptyCondition}
		if v.Empty != "" {
			empty.Status, empty.Reason, empty.Message, empty.Event = metav1.ConditionTrue, v1alpha1.ClaimLeftBehindReason, v.Empty, corev1.EventTypeWarning
		}
		notes = append(notes, empty)
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
