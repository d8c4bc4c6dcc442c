package hostclaims

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/hostname"
)

// rival returns a claim of another tenant that overlaps with a host name of a tenant, by a wildcard, and is older than the claim of the name, if there is one;
// nil without such. What people claim has no rival: administrators decided it.
func (c *Claims) rival(ctx context.Context, tenant, name string, claim *v1alpha1.HostnameClaim) (*v1alpha1.HostnameClaim, error) {
	if claim != nil && byHand(claim) {
		return nil, nil
	}
	others, err := c.overlapping(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		if other.Spec.Tenant != tenant && (claim == nil || older(other, claim)) {
			return other, nil
		}
	}
	return nil, nil
}

// overlapping returns the claims of wildcards that have a name, and for a wildcard also the claims of names that it has, from the cache.
func (c *Claims) overlapping(ctx context.Context, name string) (all []*v1alpha1.HostnameClaim, err error) {
	for _, wildcard := range hostname.Wildcards(name) {
		claim, err := c.get(ctx, hostname.ClaimName(wildcard))
		if err != nil {
			return nil, err
		}
		if claim != nil {
			all = append(all, claim)
		}
	}
	if !strings.HasPrefix(name, "*.") {
		return all, nil
	}
	list := &v1alpha1.HostnameClaimList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the claims of host names: %w", err)
	}
	for i := range list.Items {
		if hostname.Covers(name, list.Items[i].Spec.Hostname) {
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}

// get returns a claim from the cache; nil if there is none.
func (c *Claims) get(ctx context.Context, name string) (*v1alpha1.HostnameClaim, error) {
	claim := &v1alpha1.HostnameClaim{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the claim of host name %s: %w", name, err)
	}
	return claim, nil
}

// older reports whether claim a was created before claim b. The versions tell the order in which the API server gave names away, which is that of the watch:
// clocks of several API servers may differ. Nothing changes a claim after it was created.
func older(a, b *v1alpha1.HostnameClaim) bool {
	return cmp.Or(cmp.Compare(len(a.ResourceVersion), len(b.ResourceVersion)), cmp.Compare(a.ResourceVersion, b.ResourceVersion),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time)) < 0
}
