package prune

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/pvc"
)

// Dependents knows what in the App's namespace owns claims.
func Dependents(s *subject.Subject) *garbage.Dependents {
	return &garbage.Dependents{Client: s.Client, Namespace: s.App.Namespace}
}

// Retains reports whether claims of the App that hold data stay whatever is confirmed. It costs no request.
func (p *Pruner) Retains(ctx context.Context, s *subject.Subject) (bool, error) {
	project, tenant := &v1alpha1.Project{}, &v1alpha1.Tenant{}
	key := client.ObjectKey{Namespace: v1alpha1.HomeNamespace(s.Owner.Tenant), Name: s.Owner.Project}
	if err := p.Client.Get(ctx, key, project); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading project %s: %w", key, err)
	}
	if err := p.Client.Get(ctx, client.ObjectKey{Name: s.Owner.Tenant}, tenant); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading tenant %s: %w", s.Owner.Tenant, err)
	}
	policy := cmp.Or(s.App.Spec.ClaimDeletionPolicy, project.Spec.ClaimDeletionPolicy, tenant.Spec.ClaimDeletionPolicy)
	return policy != v1alpha1.ClaimDelete, nil
}

// RemovalConfirmed reports whether a person confirmed that what a deleted App protects goes, too. What confirms a list of what left the source
// says nothing of the rest.
func RemovalConfirmed(app *v1alpha1.App) bool {
	return app.Annotations[v1alpha1.ConfirmAnnotation] == v1alpha1.ConfirmAll
}

// DeleteClaims deletes the claims of an App, which is not recorded to have made them: those of a release.
func DeleteClaims(ctx context.Context, s *subject.Subject) error {
	list := &corev1.PersistentVolumeClaimList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.App.Namespace), client.MatchingLabels(s.Labels())); err != nil {
		return fmt.Errorf("listing the claims of the release: %w", err)
	}
	return pvc.Delete(ctx, s.Client, list.Items)
}

// ClaimsInTheWay reports which object of a release is not deleted because claims would go with it, and what to do.
func ClaimsInTheWay(err error, otherwise string) error {
	return step.FailAfter(v1alpha1.ClaimsInTheWayReason, 30*time.Second, fmt.Errorf("%w, %s", err, otherwise))
}
