package repository

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declaredby"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
)

// bySecret is the cache's index of Repositories by the Secrets that they name.
const bySecret = "secret"

// index adds the indexes for the queries of this package to the cache.
func index(ctx context.Context, indexer client.FieldIndexer) error {
	secrets := func(o client.Object) []string { return upstream.Secrets(o.(*v1alpha1.Repository)) }
	if err := indexer.IndexField(ctx, &v1alpha1.Repository{}, bySecret, secrets); err != nil {
		return fmt.Errorf("indexing repositories by their Secrets: %w", err)
	}
	for _, o := range []client.Object{&v1alpha1.Policy{}, &v1alpha1.Registry{}, &v1alpha1.PriceList{}, &v1alpha1.Cluster{}, &v1alpha1.Tenant{}, &v1alpha1.Project{}, &v1alpha1.App{}} {
		if err := indexer.IndexField(ctx, o, declaredby.Index, declaredby.Repository); err != nil {
			return fmt.Errorf("indexing what repositories declare: %w", err)
		}
	}
	return nil
}
