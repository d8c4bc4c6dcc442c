package repository

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// reader returns the reader of a tenant's own repository, with the limits and the clusters of the tenant; with "", that of the platform repository, whose
// limits are for tenants that have none of their own.
func (r *Reconciler) reader(ctx context.Context, name string) (*tree.Reader, error) {
	tenant, err := r.tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	clusters := &v1alpha1.ClusterList{}
	if err := r.Client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the clusters: %w", err)
	}
	reader := r.Tree.Within(r.Usage.Limits.With(&tenant.Spec.Limits))
	reader.Placement = tree.Placement{Cluster: r.Tree.Placement.Cluster, Rules: declared.Clusters(clusters.Items), Tenant: tenant.Spec.Clusters, Live: func(ref identity.Ref) (client.Object, error) {
		return r.inCache(ctx, ref)
	}}
	return reader, nil
}

// applied is the size of an applied object, and the time of the apply.
type applied struct {
	size int64
	at   time.Time
}

// unseenFor is how long an applied object counts although the cache does not show it. No cache lags for that long, so after that time the
// object has been deleted.
const unseenFor = time.Minute

// usageOf counts the usage of a tenant, once in a pass.
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
	s.usages[tenant] = u
	return u, nil
}

// admit reports whether an object is within the limits of its tenant. An object over a limit is a problem of its file, and is checked again
// when the tenant uses less or its limits change.
func (r *Reconciler) admit(ctx context.Context, s *scope, o client.Object) (bool, error) {
	ref, _ := identity.Of(o)
	if ref.Project == "" {
		return true, nil // Administrators declare Policies and Tenants.
	}
	if fits, err := r.fits(ctx, s, ref); !fits || err != nil {
		return false, err
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
		s.progress.refuse(ref, code.OverLimit, exceeded)
		s.progress.over.Add(ref)
		return false, nil
	}
	return true, nil
}

// made records that an object was applied.
func (s *scope) made(ref identity.Ref, now time.Time) {
	if u := s.usages[ref.Tenant]; u != nil {
		s.progress.applied[ref] = applied{u.Size(ref), now}
	}
}

// lookAgain rechecks the objects that limits hold back if the limits, or the usage of the tenant, have changed.
func (r *Reconciler) lookAgain(ctx context.Context, s *scope) error {
	for tenant, held := range s.progress.over {
		u, err := r.usageOf(ctx, s, tenant)
		if err != nil {
			return err
		}
		a, err := r.allotment(ctx, s, tenant)
		if err != nil {
			return err
		}
		if u.Limits != held.Limits || u.Sums != held.Sums || a.Refusals() != held.Refusals {
			s.progress.look(held.Refs.UnsortedList()...)
		}
	}
	return nil
}

// settle records, at the end of a pass, the usage of each tenant with objects that limits hold back.
func (s *scope) settle() {
	for tenant, held := range s.progress.over {
		if u := s.usages[tenant]; u != nil {
			held.Limits, held.Sums, held.Refusals = u.Limits, u.Sums, s.allotments[tenant].Refusals()
		}
	}
}
