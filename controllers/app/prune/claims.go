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

// Dependents finds which objects of the App's namespace own claims.
func Dependents(s *subject.Subject) *garbage.Dependents {
	return &garbage.Dependents{Client: s.Client, Namespace: s.App.Namespace}
}

// Retains reports whether the policy for the App's claims is Retain: claims with data then stay even after a confirmation. Retains reads
// only from the cache.
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

// RemovalConfirmed reports whether a person confirmed that the protected objects of a deleted App are deleted, too. The confirmation of a
// list of objects that left the source does not count.
func RemovalConfirmed(app *v1alpha1.App) bool {
	return app.Annotations[v1alpha1.ConfirmAnnotation] == v1alpha1.ConfirmAll
}

// DeleteClaims deletes the claims of a release. It finds them by the App's labels, because they are not in the inventory.
func DeleteClaims(ctx context.Context, s *subject.Subject) error {
	list := &corev1.PersistentVolumeClaimList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.App.Namespace), client.MatchingLabels(s.Labels())); err != nil {
		return fmt.Errorf("listing the claims of the release: %w", err)
	}
	return pvc.Delete(ctx, s.Client, list.Items)
}

// ClaimsInTheWay says which object of a release is not deleted because claims would be deleted with it, and what to do.
func ClaimsInTheWay(err error, otherwise string) error {
	return step.FailAfter(v1alpha1.ClaimsInTheWayReason, 30*time.Second, fmt.Errorf("%w, %s", err, otherwise))
}
