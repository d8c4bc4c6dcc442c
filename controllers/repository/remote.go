package repository

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// query returns the query to a remote that is polled every so often.
func (r *Reconciler) query(repository *v1alpha1.Repository, every time.Duration) cache.Query {
	versions := r.secretVersions(repository)
	query := cache.Query{
		Question: cache.QuestionEvery(repository, every), Caller: client.ObjectKeyFromObject(repository), Key: string(repository.UID),
		Version: fmt.Sprint(repository.Generation, versions), Host: transport.HostOf(repository.Spec.URL),
		Tenant: budget.OfRepository(repository.Name), Priority: pool.Repository, Timeout: repository.Spec.Within(),
	}
	query.Request += versions
	if repository.Name == v1alpha1.PlatformRepository {
		query.Priority = pool.Platform
	}
	return query
}

// Source returns the URL to fetch from and the credentials.
func (r *Reconciler) Source(ctx context.Context, repository *v1alpha1.Repository) (git.Source, error) {
	auth, err := transport.ReadAuth(ctx, &r.credentials, r.Namespace, repository.Spec.SecretRef)
	return git.Source{URL: repository.Spec.URL, Ref: repository.Spec.Ref.DeepCopy(), Auth: auth, Tenant: budget.OfRepository(repository.Name)}, err
}
