// Package declaredby has the index of the cache by which controllers list what a Repository declares.
package declaredby

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Index is the cache's index of Policies, Registries, PriceLists, Tenants, Projects and Apps by the repository that declares them.
const Index = "repository"

// Repository returns the value of Index of an object; none if no repository declares it.
func Repository(o client.Object) []string {
	if name := o.GetLabels()[v1alpha1.RepositoryLabel]; name != "" {
		return []string{name}
	}
	return nil
}
