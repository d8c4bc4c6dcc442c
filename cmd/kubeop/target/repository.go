package target

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

// RepositoryOf returns the Repository whose commits declare an object, which need not exist yet: the platform's, unless it is of a tenant that has
// one of its own.
func (c *Connection) RepositoryOf(ctx context.Context, of Object) (Object, error) {
	platform := Object{Kind: Repository, Ref: identity.Ref{Tenant: v1alpha1.PlatformRepository}}
	switch of.Kind.Name {
	case v1alpha1.RepositoryKind:
		return of, nil
	case v1alpha1.TenantKind, v1alpha1.PolicyKind, v1alpha1.RegistryKind, v1alpha1.PriceListKind, v1alpha1.ClusterKind:
		return platform, nil
	}
	reader, err := c.Client()
	if err != nil {
		return Object{}, err
	}
	own := Object{Kind: Repository, Ref: identity.Ref{Tenant: of.Ref.Tenant}}
	err = reader.Get(ctx, own.Key(), &v1alpha1.Repository{})
	switch {
	case err == nil:
		return own, nil
	case !apierrors.IsNotFound(err):
		return Object{}, fmt.Errorf("reading the %s: %w", own, err)
	}
	// A name with a mistake is not taken for one of a tenant without a repository.
	tenant := Object{Kind: Tenant, Ref: own.Ref}
	if err := reader.Get(ctx, client.ObjectKey{Name: own.Ref.Tenant}, &v1alpha1.Tenant{}); err != nil {
		return Object{}, fmt.Errorf("reading the %s: %w", tenant, err)
	}
	return platform, nil
}
