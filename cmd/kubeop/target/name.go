package target

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Object names one object of kubeop. The Ref of a Repository has its name as the tenant.
type Object struct {
	Kind Kind
	Ref  identity.Ref
}

// Key of the object in the cluster.
func (o Object) Key() client.ObjectKey { return o.Ref.Key() }

// String names the object in sentences: "app acme/shop/web".
func (o Object) String() string { return o.Kind.Singular() + " " + o.Ref.Path() }

// Args are the arguments that name the object in a command. Only an app needs no kind.
func (o Object) Args() string {
	if o.Kind.Name == v1alpha1.AppKind {
		return o.Ref.Path()
	}
	return o.String()
}

// PathOf returns the name by which commands find an object of kubeop: its path, or the name of a Repository.
func PathOf(object client.Object) string {
	if ref, ok := identity.Of(object); ok {
		return ref.Path()
	}
	return object.GetName()
}

// Object returns the object that the arguments "[KIND] NAME" name. Without a kind it is an app. A name may have the names of the tenant and the
// project before it: "acme/shop/web". Missing parts come from --tenant and --project, or else from the namespace of -n or of the kubeconfig.
func (c *Connection) Object(args []string) (Object, error) {
	kind := App
	if len(args) == 2 {
		var err error
		if kind, err = KindOf(args[0]); err != nil {
			return Object{}, err
		}
	}
	return c.Named(kind, args[len(args)-1])
}

// Named returns the object of a kind that a name names, as Object does.
func (c *Connection) Named(kind Kind, name string) (Object, error) {
	parts := strings.Split(name, "/")
	missing := len(kind.Path) - len(parts)
	if missing < 0 || strings.Contains("/"+name+"/", "//") {
		return Object{}, fmt.Errorf("%q does not name one %s: write %s", name, kind.Singular(), strings.Join(kind.Path, "/"))
	}
	within := c.Within()
	full := append([]string{within.Tenant, within.Project}[:missing], parts...)
	for i, part := range full {
		if part == "" {
			return Object{}, fmt.Errorf("%q does not say which %s the %s is in: write %s/%s, or give --%[2]s",
				name, strings.ToLower(kind.Path[i]), kind.Singular(), strings.Join(kind.Path[i:missing], "/"), name)
		}
	}
	switch kind.Name {
	case v1alpha1.PolicyKind:
		return Object{Kind: kind, Ref: identity.Ref{Policy: full[0]}}, nil
	case v1alpha1.RegistryKind:
		return Object{Kind: kind, Ref: identity.Ref{Registry: full[0]}}, nil
	case v1alpha1.PriceListKind:
		return Object{Kind: kind, Ref: identity.Ref{PriceList: full[0]}}, nil
	case v1alpha1.ClusterKind:
		return Object{Kind: kind, Ref: identity.Ref{Cluster: full[0]}}, nil
	}
	full = append(full, "", "")
	return Object{Kind: kind, Ref: identity.Ref{Tenant: full[0], Project: full[1], App: full[2]}}, nil
}

// Within returns the tenant and the project of the flags, or else of the namespace of -n or of the kubeconfig. Both can be empty.
func (c *Connection) Within() identity.Ref {
	ref := identity.Ref{Tenant: c.Tenant, Project: c.Project}
	namespace, err := c.namespace()
	if err != nil {
		return ref // The first request reports what is wrong with the kubeconfig.
	}
	here := ofNamespace(namespace, *c.Flags.Namespace != "")
	if ref.Tenant == "" {
		ref.Tenant = here.Tenant
	}
	if ref.Project == "" && ref.Tenant == here.Tenant {
		ref.Project = here.Project
	}
	return ref
}

// namespace returns that of -n, or else of the kubeconfig, which says nothing about what a manager reads.
func (c *Connection) namespace() (string, error) {
	if manager, err := c.Manager(); err != nil || manager.Server != "" {
		return *c.Flags.Namespace, err
	}
	namespace, _, err := c.Flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// ofNamespace returns the tenant and the project of a namespace. A namespace of no tenant can be a project of the platform. It is taken for one
// only if the caller named it.
func ofNamespace(namespace string, named bool) identity.Ref {
	if home, ok := strings.CutPrefix(namespace, v1alpha1.HomeNamespace("")); ok && home != "" && !strings.Contains(home, "-") {
		return identity.Ref{Tenant: home}
	}
	tenant := v1alpha1.TenantOf(namespace)
	if tenant == "" || tenant == v1alpha1.PlatformTenant && !named {
		return identity.Ref{}
	}
	return identity.Ref{Tenant: tenant, Project: strings.TrimPrefix(namespace, v1alpha1.ProjectNamespace(tenant, ""))}
}
