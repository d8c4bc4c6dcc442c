package promotion

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/gitops/identity"
)

// line says what is not promoted yet to an app.
type line struct{ reason, text string }

// urgency is the order of the reasons: what a person has to do comes first.
var urgency = []string{v1alpha1.WriteFailedReason, v1alpha1.AuthenticationFailedReason, v1alpha1.SourceNotFoundReason, v1alpha1.InvalidSourceReason,
	v1alpha1.PromotionRefusedReason, v1alpha1.PromotionHeldReason, v1alpha1.PullRequestOpenReason, v1alpha1.ProgressingReason}

// add adds the line of an app.
func (s *state) add(reason, format string, args ...any) {
	s.lines = append(s.lines, line{reason, fmt.Sprintf(format, args...)})
}

// hold adds a promotion that waits for a confirmation.
func (s *state) hold(held v1alpha1.HeldPromotion) {
	s.add(v1alpha1.PromotionHeldReason, "%s: %s", held.App, held.Changes)
	if len(s.status.HeldPromotions) < v1alpha1.MaxHeldPromotions {
		s.status.HeldPromotions = append(s.status.HeldPromotions, held)
	}
}

// note returns the condition PromotionPending.
func (s *state) note(project *v1alpha1.Project) step.Note {
	note := step.Note{Condition: v1alpha1.PromotionPendingCondition}
	if len(s.lines) == 0 {
		return note
	}
	sorted := slices.Clone(s.lines)
	slices.SortStableFunc(sorted, func(a, b line) int { return slices.Index(urgency, a.reason) - slices.Index(urgency, b.reason) })
	texts := make([]string, len(sorted))
	for i, each := range sorted {
		texts[i] = each.text
	}
	note.Status, note.Reason, note.Message = metav1.ConditionTrue, sorted[0].reason, step.Few(texts)
	if held := s.status.HeldPromotions; len(held) > 0 {
		tokens := make([]string, len(held))
		for i := range held {
			tokens[i] = held[i].Token
		}
		note.Message += "; to confirm, " + command.Annotate(command.Admin.In(tenantOf(project)), "project", project, v1alpha1.ConfirmPromotionAnnotation,
			strings.Join(tokens, ","))
	}
	if slices.Index(urgency, note.Reason) < slices.Index(urgency, v1alpha1.PromotionHeldReason) {
		note.Event = corev1.EventTypeWarning
	}
	return note
}

// tenantOf returns the tenant of a project, from its namespace, which cannot be forged.
func tenantOf(project *v1alpha1.Project) string {
	ref, _ := identity.Of(project)
	return ref.Tenant
}
