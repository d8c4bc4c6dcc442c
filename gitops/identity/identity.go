// Package identity identifies the Policies, Registries, PriceLists, Clusters, Tenants, Projects and Apps of repositories by their place in the repository. The key of the object in the
// cluster follows from the place.
package identity

import (
	"path"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Ref identifies a Policy, a Registry, a PriceList, a Cluster, a Tenant, a Project or an App. Of the first four, only the field of their kind is set. Of a
// Tenant, Project and App are empty; of a Project, App is.
type Ref struct{ Tenant, Project, App, Policy, Registry, PriceList, Cluster string }

// OneFile reports whether the object is declared by a file of its own, which has its name, and not by a folder: a Policy, a Registry, a PriceList
// or a Cluster.
func (r Ref) OneFile() bool {
	return r.Policy != "" || r.Registry != "" || r.PriceList != "" || r.Cluster != ""
}

// Kind of the object.
func (r Ref) Kind() string {
	switch {
	case r.Policy != "":
		return v1alpha1.PolicyKind
	case r.Registry != "":
		return v1alpha1.RegistryKind
	case r.PriceList != "":
		return v1alpha1.PriceListKind
	case r.Cluster != "":
		return v1alpha1.ClusterKind
	case r.App != "":
		return v1alpha1.AppKind
	case r.Project != "":
		return v1alpha1.ProjectKind
	}
	return v1alpha1.TenantKind
}

// Key of the object. A namespace is named after its tenant and project, see ProjectNamespace.
func (r Ref) Key() client.ObjectKey {
	switch {
	case r.OneFile():
		return client.ObjectKey{Name: r.Policy + r.Registry + r.PriceList + r.Cluster}
	case r.App != "":
		return client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(r.Tenant, r.Project), Name: r.App}
	case r.Project != "":
		return client.ObjectKey{Namespace: v1alpha1.HomeNamespace(r.Tenant), Name: r.Project}
	}
	return client.ObjectKey{Name: r.Tenant}
}

// Path is "tenant", "tenant/project" or "tenant/project/app", or the name of a Policy, a Registry, a PriceList or a Cluster, which can be that of a Tenant, too. Sorted by
// Path, an object comes after its parent.
func (r Ref) Path() string {
	if r.OneFile() {
		return r.Key().Name
	}
	return strings.TrimRight(r.Tenant+"/"+r.Project+"/"+r.App, "/")
}

// File returns the file that declares the object, in its own repository or, with platform, in the platform's.
func (r Ref) File(platform bool) string {
	switch {
	case r.Policy != "":
		return layout.PolicyFile(r.Policy)
	case r.Registry != "":
		return layout.RegistryFile(r.Registry)
	case r.PriceList != "":
		return layout.PriceListFile(r.PriceList)
	case r.Cluster != "":
		return layout.ClusterFile(r.Cluster)
	}
	folder := ""
	switch {
	case platform && r.Tenant == v1alpha1.PlatformTenant:
		folder = path.Join(layout.PlatformFolder, r.Project)
	case platform:
		folder = path.Join(layout.TenantsFolder, r.Tenant)
	}
	if r.Project == "" {
		return path.Join(folder, layout.TenantFile)
	}
	if r.Tenant != v1alpha1.PlatformTenant || !platform {
		folder = path.Join(folder, layout.ProjectsFolder, r.Project)
	}
	if r.App == "" {
		return path.Join(folder, layout.ProjectFile)
	}
	return path.Join(folder, layout.AppsFolder, r.App, layout.AppFile)
}

// String returns the kind and the key of the object: "App kubeop-acme-shop/web".
func (r Ref) String() string {
	return r.Kind() + " " + strings.TrimPrefix(r.Key().String(), "/")
}

// Parent is the Project of an App or the Tenant of a Project; the zero Ref for the others.
func (r Ref) Parent() Ref {
	switch {
	case r.App != "":
		return Ref{Tenant: r.Tenant, Project: r.Project}
	case r.Project != "":
		return Ref{Tenant: r.Tenant}
	}
	return Ref{}
}

// Of returns the Ref of an object in the cluster, from its kind, namespace and name. It does not use labels, because they can be forged. It
// returns false if no repository can declare such an object.
func Of(o client.Object) (Ref, bool) {
	namespace := o.GetNamespace()
	var r Ref
	switch o.(type) {
	case *v1alpha1.Policy:
		return Ref{Policy: o.GetName()}, true
	case *v1alpha1.Registry:
		return Ref{Registry: o.GetName()}, true
	case *v1alpha1.PriceList:
		return Ref{PriceList: o.GetName()}, true
	case *v1alpha1.Cluster:
		return Ref{Cluster: o.GetName()}, true
	case *v1alpha1.Tenant:
		return Ref{Tenant: o.GetName()}, true
	case *v1alpha1.Project:
		r = Ref{Tenant: strings.TrimPrefix(namespace, v1alpha1.HomeNamespace("")), Project: o.GetName()}
	case *v1alpha1.App:
		r = Ref{Tenant: v1alpha1.TenantOf(namespace), App: o.GetName()}
		r.Project = strings.TrimPrefix(namespace, v1alpha1.ProjectNamespace(r.Tenant, ""))
	}
	return r, r.Tenant != "" && r.Project != "" && r.Key().Namespace == namespace
}
