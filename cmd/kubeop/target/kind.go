package target

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Kind is a kind of kubeop.
type Kind struct {
	// Name of the kind, and Plural, its resource in the API.
	Name, Plural string
	// Path is how an object is named in full, such as "TENANT/PROJECT/APP".
	Path []string
	// New returns an empty object, and NewList an empty list.
	New     func() client.Object
	NewList func() client.ObjectList

	short []string
}

// The kinds of kubeop.
var (
	App = Kind{
		Name: v1alpha1.AppKind, Plural: "apps", Path: []string{"TENANT", "PROJECT", "APP"},
		New: func() client.Object { return &v1alpha1.App{} }, NewList: func() client.ObjectList { return &v1alpha1.AppList{} },
	}
	Project = Kind{
		Name: v1alpha1.ProjectKind, Plural: "projects", Path: []string{"TENANT", "PROJECT"},
		New: func() client.Object { return &v1alpha1.Project{} }, NewList: func() client.ObjectList { return &v1alpha1.ProjectList{} },
	}
	Tenant = Kind{
		Name: v1alpha1.TenantKind, Plural: "tenants", Path: []string{"TENANT"},
		New: func() client.Object { return &v1alpha1.Tenant{} }, NewList: func() client.ObjectList { return &v1alpha1.TenantList{} },
	}
	Policy = Kind{
		Name: v1alpha1.PolicyKind, Plural: "policies", Path: []string{"POLICY"}, short: []string{"pol"},
		New: func() client.Object { return &v1alpha1.Policy{} }, NewList: func() client.ObjectList { return &v1alpha1.PolicyList{} },
	}
	Registry = Kind{
		Name: v1alpha1.RegistryKind, Plural: "registries", Path: []string{"REGISTRY"}, short: []string{"reg"},
		New: func() client.Object { return &v1alpha1.Registry{} }, NewList: func() client.ObjectList { return &v1alpha1.RegistryList{} },
	}
	PriceList = Kind{
		Name: v1alpha1.PriceListKind, Plural: "pricelists", Path: []string{"PRICELIST"}, short: []string{"prices"},
		New: func() client.Object { return &v1alpha1.PriceList{} }, NewList: func() client.ObjectList { return &v1alpha1.PriceListList{} },
	}
	Cluster = Kind{
		Name: v1alpha1.ClusterKind, Plural: "clusters", Path: []string{"CLUSTER"},
		New: func() client.Object { return &v1alpha1.Cluster{} }, NewList: func() client.ObjectList { return &v1alpha1.ClusterList{} },
	}
	Repository = Kind{
		Name: v1alpha1.RepositoryKind, Plural: "repositories", Path: []string{"REPOSITORY"}, short: []string{"repo", "repos"},
		New: func() client.Object { return &v1alpha1.Repository{} }, NewList: func() client.ObjectList { return &v1alpha1.RepositoryList{} },
	}
	Kinds = []Kind{App, Project, Tenant, Policy, Registry, PriceList, Cluster, Repository}

	// Reconciled are the kinds whose status says how far kubeop is with an object. A Policy, a PriceList and a Cluster have none: they hold from when they are written.
	Reconciled = []Kind{App, Project, Tenant, Registry, Repository}
)

// Singular is the name of the kind as an argument: "app".
func (k Kind) Singular() string { return strings.ToLower(k.Name) }

// KindOf returns the kind that an argument names, in singular or plural, as kubectl accepts it.
func KindOf(arg string) (Kind, error) {
	name := strings.TrimSuffix(strings.ToLower(arg), "."+v1alpha1.Group)
	i := slices.IndexFunc(Kinds, func(k Kind) bool {
		return name == k.Singular() || name == k.Plural || slices.Contains(k.short, name)
	})
	if i < 0 {
		return Kind{}, fmt.Errorf("kubeop has no kind %q; its kinds are app, project, tenant, policy, registry, pricelist, cluster and repository", arg)
	}
	return Kinds[i], nil
}
