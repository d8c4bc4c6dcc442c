// Package usage counts how much of the limits in spec.limits of its Tenant each tenant uses in the cluster: projects, apps, and the size of
// their specs.
package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Counter counts objects in the cache. Safe for concurrent use.
type Counter struct {
	// Reader is a cache. Listed objects are not copied, so they must not be changed.
	Reader client.Reader
	// Limits are for tenants without limits of their own.
	Limits budget.Limits
	// Budgets reads what their projects have of the budgets of tenants.
	Budgets *Budgets

	mu sync.Mutex
	// sizes are the sizes of each tenant's objects at the last count.
	sizes map[string]map[types.UID]sized
}

// sized is the size of one generation of an object.
type sized struct{ generation, bytes int64 }

// Usage is what one tenant uses.
type Usage struct {
	Tenant string
	Limits budget.Limits
	budget.Sums
	// objects are the sizes of the tenant's Projects and Apps.
	objects map[identity.Ref]int64
}

// New returns the usage of a tenant without objects.
func New(tenant string, limits budget.Limits) *Usage {
	return &Usage{Tenant: tenant, Limits: limits, objects: map[identity.Ref]int64{}}
}

// Of counts the objects of a tenant. It visits each of them.
func (c *Counter) Of(ctx context.Context, name string) (*Usage, error) {
	tenant := &v1alpha1.Tenant{}
	if err := c.Reader.Get(ctx, client.ObjectKey{Name: name}, tenant); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading tenant %s: %w", name, err)
	}
	projects := &v1alpha1.ProjectList{}
	if err := c.Reader.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(name)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the projects of %s: %w", name, err)
	}
	u := New(name, c.Limits.With(&tenant.Spec.Limits))
	is, was := map[types.UID]sized{}, c.before(name)
	for i := range projects.Items {
		if err := u.count(&projects.Items[i], was, is); err != nil {
			return nil, err
		}
		namespace := v1alpha1.ProjectNamespace(name, projects.Items[i].Name)
		apps := &v1alpha1.AppList{}
		if err := c.Reader.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the apps of %s: %w", namespace, err)
		}
		for k := range apps.Items {
			if err := u.count(&apps.Items[k], was, is); err != nil {
				return nil, err
			}
		}
	}
	c.remember(name, is)
	return u, nil
}

func (c *Counter) before(tenant string) map[types.UID]sized {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sizes[tenant]
}

// remember keeps the sizes of a tenant's objects for the next count.
func (c *Counter) remember(tenant string, sizes map[types.UID]sized) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sizes == nil {
		c.sizes = map[string]map[types.UID]sized{}
	}
	if c.sizes[tenant] = sizes; len(sizes) == 0 {
		delete(c.sizes, tenant)
	}
}

// count counts an object of the cluster. Its size is computed once for each generation.
func (u *Usage) count(o client.Object, was, is map[types.UID]sized) error {
	ref, ok := identity.Of(o)
	if !ok {
		return nil
	}
	size, known := was[o.GetUID()]
	if !known || size.generation != o.GetGeneration() {
		bytes, err := SizeOf(o)
		if err != nil {
			return err
		}
		size = sized{o.GetGeneration(), bytes}
	}
	is[o.GetUID()] = size
	u.Add(ref, size.bytes)
	return nil
}

// SizeOf is how much a Project or an App counts in TreeBytes: the size of its spec as JSON.
func SizeOf(o client.Object) (int64, error) {
	var spec any
	switch o := o.(type) {
	case *v1alpha1.Project:
		spec = &o.Spec
	case *v1alpha1.App:
		spec = &o.Spec
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return 0, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	return budget.Declared(int64(len(text))), nil
}

// Has reports whether the tenant has an object.
func (u *Usage) Has(ref identity.Ref) bool {
	_, has := u.objects[ref]
	return has
}

// Size is how much an object of the tenant counts in TreeBytes.
func (u *Usage) Size(ref identity.Ref) int64 { return u.objects[ref] }

// Add counts an object, and replaces an earlier count of it.
func (u *Usage) Add(ref identity.Ref, size int64) {
	was, has := u.objects[ref]
	u.objects[ref] = size
	u.TreeBytes += size - was
	switch {
	case has:
	case ref.App == "":
		u.Projects++
	default:
		u.Apps++
	}
}

// Admit counts an object that is about to be created or changed, and refuses it if that exceeds a limit. A change of an existing object to
// the same or a smaller size is always allowed.
func (u *Usage) Admit(ref identity.Ref, size int64) error {
	was, has := u.objects[ref]
	over := &budget.Exceeded{}
	switch {
	case !has && ref.App == "" && u.Projects >= u.Limits.Projects:
		over.Field, over.What, over.Is, over.Limit = budget.Projects, "projects", u.Projects+1, u.Limits.Projects
	case !has && ref.App != "" && u.Apps >= u.Limits.Apps:
		over.Field, over.What, over.Is, over.Limit = budget.Apps, "apps of all projects", u.Apps+1, u.Limits.Apps
	case size > was && u.TreeBytes+size-was > u.Limits.TreeBytes:
		over.Field, over.What, over.Is, over.Limit = budget.TreeBytes, "Projects and Apps in the cluster, by size", u.TreeBytes+size-was, u.Limits.TreeBytes
	default:
		u.Add(ref, size)
		return nil
	}
	over.What = fmt.Sprintf("%s of tenant %s, with this one", over.What, u.Tenant)
	return over
}
