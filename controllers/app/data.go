package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/pvc"
)

// dataFacts are the facts about claims.
type dataFacts struct {
	// changed are StatefulSets that are delivered so that they keep their claims.
	changed []string
	// empty says which volumes start empty though a claim for them is left, "" for none.
	empty string
}

// dataNotes tell of volumes that start empty, and once what was changed for the sake of data.
func (s *scope) dataNotes() []step.Note {
	var notes []step.Note
	if s.app.Spec.Image != nil {
		empty := step.Note{Condition: v1alpha1.StartedEmptyCondition}
		if s.data.empty != "" {
			empty.Status, empty.Reason, empty.Message, empty.Event = metav1.ConditionTrue, v1alpha1.ClaimLeftBehindReason, s.data.empty, corev1.EventTypeWarning
		}
		notes = append(notes, empty)
	}
	told := strings.Join(s.data.changed, ", ")
	if s.app.Spec.Helm != nil || s.objects == nil || told == s.memory.retention {
		return notes
	}
	if s.memory.retention = told; told == "" {
		return notes
	}
	return append(notes, step.Note{Reason: v1alpha1.ClaimsRetainedReason, Event: corev1.EventTypeWarning, Message: fmt.Sprintf(
		"StatefulSet %s is delivered with persistentVolumeClaimRetentionPolicy Retain, for both fields: nothing deletes claims that nobody confirmed; write Retain to no longer be told", told)})
}

// retained counts what is held for good while claimDeletionPolicy is Retain.
func (s *scope) retained() int {
	n := 0
	for _, h := range s.held {
		if strings.HasSuffix(h, retained) {
			n++
		}
	}
	return n
}

// dependents knows what in the app's namespace owns claims.
func (s *scope) dependents() *apply.Dependents {
	return &apply.Dependents{Client: s.client, Namespace: s.app.Namespace}
}

// retains reports whether claims of the app that hold data stay whatever is confirmed. It costs no request.
func (r *Reconciler) retains(ctx context.Context, s *scope) (bool, error) {
	project, tenant := &v1alpha1.Project{}, &v1alpha1.Tenant{}
	key := client.ObjectKey{Namespace: v1alpha1.HomeNamespace(s.owner.Tenant), Name: s.owner.Project}
	if err := r.Client.Get(ctx, key, project); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading project %s: %w", key, err)
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: s.owner.Tenant}, tenant); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading tenant %s: %w", s.owner.Tenant, err)
	}
	policy := v1alpha1.ClaimPolicy(s.app.Spec.ClaimDeletionPolicy, project.Spec.ClaimDeletionPolicy, tenant.Spec.ClaimDeletionPolicy)
	return policy == v1alpha1.ClaimRetain, nil
}

// removalConfirmed reports whether somebody confirmed that what a deleted app protects goes, too. What confirms a list of what left the
// source says nothing of the rest.
func removalConfirmed(app *v1alpha1.App) bool {
	return app.Annotations[v1alpha1.ConfirmAnnotation] == v1alpha1.ConfirmAll
}

// uninstallWithoutData uninstalls the release. Its claims stay; those that go are deleted afterwards. It is not begun while objects of the
// release own claims, which would go with them, unless those go.
func (r *Reconciler) uninstallWithoutData(ctx context.Context, s *scope) error {
	retain, err := r.retains(ctx, s)
	if err != nil {
		return err
	}
	goes := removalConfirmed(s.app) && !retain
	if err := r.uninstall(ctx, s, goes); err != nil || !goes {
		return err
	}
	list := &corev1.PersistentVolumeClaimList{}
	if err := s.client.List(ctx, list, client.InNamespace(s.app.Namespace), client.MatchingLabels(ownerLabels(s.owner))); err != nil {
		return fmt.Errorf("listing the claims of the release: %w", err)
	}
	return pvc.Delete(ctx, s.client, list.Items)
}

// claimsInTheWay tells which object of a release is not deleted because claims would go with it, and what to do.
func claimsInTheWay(err error, otherwise string) error {
	return step.FailAfter(v1alpha1.ClaimsInTheWayReason, 30*time.Second, fmt.Errorf("%w, %s", err, otherwise))
}
