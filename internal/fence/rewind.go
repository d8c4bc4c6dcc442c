package fence

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// ErrWentBack is the reason to end this process: Kubernetes' database was restored to an earlier state than this process has seen. Its
// caches and watches are invalid.
var ErrWentBack = errors.New("the cluster went back in time")

// Leases returns the lease client with which the lock must be made. With it the fence notices that the cluster's state went back, as when
// etcd is restored from a snapshot. Every read of the lease comes from the database and not from an API server's cache. The lease is
// written every few seconds, so every restored state has an older lease.
func (f *Fence) Leases(inner coordinationv1client.LeasesGetter) coordinationv1client.LeasesGetter {
	return leasesGetter{inner, f}
}

type leasesGetter struct {
	inner coordinationv1client.LeasesGetter
	fence *Fence
}

// Leases implements coordinationv1client.LeasesGetter.
func (g leasesGetter) Leases(namespace string) coordinationv1client.LeaseInterface {
	return leases{g.inner.Leases(namespace), g.fence}
}

type leases struct {
	coordinationv1client.LeaseInterface
	fence *Fence
}

// Get reads the lease. Without a resourceVersion in the options no API server answers from its cache.
func (l leases) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.look(l.LeaseInterface.Get(ctx, name, options))
}

// Create writes the first lease.
func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.look(l.LeaseInterface.Create(ctx, lease, options))
}

// Update writes the next lease.
func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.look(l.LeaseInterface.Update(ctx, lease, options))
}

func (l leases) look(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return lease, err
	}
	return lease, l.fence.see(lease.ResourceVersion)
}

// see compares a resourceVersion of the lease with the newest one. Versions that cannot be compared are ignored.
func (f *Fence) see(version string) error {
	f.mu.Lock()
	newest := f.newest
	order, err := resourceversion.CompareResourceVersion(version, cmp.Or(newest, version))
	if err == nil && order >= 0 {
		f.newest = version
	}
	f.mu.Unlock()
	if err != nil || order >= 0 {
		return nil
	}
	back := fmt.Errorf("%w: the lease %s is at resourceVersion %s and was at %s: Kubernetes was restored from a backup; ending, so that everything is read anew",
		ErrWentBack, f.lease, version, newest)
	f.lose(back)
	return back
}
