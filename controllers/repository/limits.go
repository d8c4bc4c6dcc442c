package repository

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/identity"
)

// limits are those that a tenant's own repository is read with; for the platform repository, those of tenants that set none.
func (r *Reconciler) limits(ctx context.Context, name string) (budget.Limits, error) {
	tenant := &v1alpha1.Tenant{}
	if name == "" {
		return r.Usage.Limits, nil
	}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, tenant)
	return r.Usage.Limits.With(&tenant.Spec.Limits), client.IgnoreNotFound(err)
}

// applied is how large an object was when it was applied, and when.
type applied struct {
	size int64
	at   time.Time
}

// unseenFor is how long what was applied counts though the cache does not show it: longer than any cache lags behind, and then it has
// been deleted.
const unseenFor = time.Minute

// usageOf counts what a tenant has, once in a pass.
func (r *Reconciler) usageOf(ctx context.Context, s *scope, tenant string) (*usage.Usage, error) {
	if u := s.usages[tenant]; u != nil {
		return u, nil
	}
	u, err := r.Usage.Of(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for ref, made := range s.progress.applied {
		switch age := r.Steps.Clock.Now().Sub(made.at); {
		case u.Has(ref) || age > unseenFor:
			delete(s.progress.applied, ref)
		case ref.Tenant == tenant:
			u.Add(ref, made.size)
		}
	}
	if s.usages == nil {
		s.usages = map[string]*usage.Usage{}
	}
	s.usages[tenant] = u
	return u, nil
}

// admit reports whether an object that is about to be applied is within the limits of its tenant. One that is not is a problem of its
// file, and is looked at again when the tenant has less or may have more.
func (r *Reconciler) admit(ctx context.Context, s *scope, o client.Object) (bool, error) {
	ref, _ := identity.Of(o)
	if ref.Project == "" {
		return true, nil // Administrators declare Tenants.
	}
	u, err := r.usageOf(ctx, s, ref.Tenant)
	if err != nil {
		return false, err
	}
	size, err := usage.SizeOf(o)
	if err != nil {
		return false, err
	}
	if exceeded := u.Admit(ref, size); exceeded != nil {
		s.progress.refuse(ref, exceeded)
		s.progress.over.add(ref)
		return false, nil
	}
	return true, nil
}

// made notes that an object was applied.
func (s *scope) made(ref identity.Ref, now time.Time) {
	if u := s.usages[ref.Tenant]; u != nil {
		s.progress.applied[ref] = applied{u.Size(ref), now}
	}
}

// lookAgain has what limits held back looked at where they, or what the tenant has, are not as they were.
func (r *Reconciler) lookAgain(ctx context.Context, s *scope) error {
	for tenant, held := range s.progress.over {
		u, err := r.usageOf(ctx, s, tenant)
		if err != nil {
			return err
		}
		if u.Limits != held.limits || u.Sums != held.sums {
			s.progress.look(held.refs.UnsortedList()...)
		}
	}
	return nil
}

// settle notes at the end of a pass what those tenants had of which something is held back.
func (s *scope) settle() {
	for tenant, held := range s.progress.over {
		if u := s.usages[tenant]; u != nil {
			held.limits, held.sums = u.Limits, u.Sums
		}
	}
}
