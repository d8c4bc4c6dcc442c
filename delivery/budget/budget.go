// Package budget defines how much of the platform one tenant may use, in plain numbers. Code that counts usage gets a Limits and returns an
// Exceeded if a limit is exceeded.
package budget

import (
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Limits of one tenant. Sizes are in bytes; each number is the largest that is allowed.
type Limits struct {
	// Projects and Apps are the numbers of objects.
	Projects, Apps int64
	// TreeBytes is the size of the files that declare Projects and Apps, see Declared.
	TreeBytes int64
	// App are the limits of each app.
	App App
	// SourceBytes is the size of the apps' sources on the operator's disk.
	SourceBytes int64
	// PackBytes is the inflated size of the Git objects of one fetch.
	PackBytes int64
	// RenderedBytes is the size of what all apps of the tenant deliver.
	RenderedBytes int64
	// StoreBytes is the size of the objects in the tenant's namespaces in the API server's store, see quota.Bound.
	StoreBytes int64
}

// Sums are how many Projects and Apps one tenant has, and the size of their specs in bytes.
type Sums struct{ Projects, Apps, TreeBytes int64 }

// App are the limits of one app: the number of objects, the size of their manifests in bytes, and the number of YAML values in them
// (mappings, lists and scalars), both as read and as rendered.
type App struct{ Objects, Bytes, Values int64 }

// Default are the limits of a tenant that sets none.
func Default() Limits {
	return Limits{
		Projects: 50, Apps: 500, TreeBytes: 8 << 20,
		App:         App{Objects: 5000, Bytes: 8 << 20, Values: 500_000},
		SourceBytes: 2 << 30, PackBytes: 1 << 30, RenderedBytes: 64 << 20, StoreBytes: 96 << 20,
	}
}

// leastDeclared is how much a file that declares a Project or an App counts at least, in bytes, because even a small one takes that much
// memory.
const leastDeclared = 1 << 10

// Declared is how much a file of the given size counts in TreeBytes.
func Declared(size int64) int64 { return max(size, leastDeclared) }

// With returns the limits, with those that are set in their place.
func (l Limits) With(set *v1alpha1.TenantLimits) Limits {
	for _, f := range fields {
		if value, ok := f.set(set); ok {
			*f.in(&l) = value
		}
	}
	return l
}

// Check reports values that the API server would refuse in the spec of a Tenant. The error names the field and the allowed values.
func Check(set *v1alpha1.TenantLimits) error {
	for _, f := range fields {
		if value, ok := f.set(set); ok && (value < f.least || value > f.most) {
			return fmt.Errorf("%s is %s; it may be %s to %s", f.Name, f.Text(value), f.Text(f.least), f.Text(f.most))
		}
	}
	return nil
}

// Exceeded is the error of an exceeded limit.
type Exceeded struct {
	// Field of spec.limits of the Tenant.
	Field Field
	// What describes what is too much, such as "project.yaml and app.yaml files of tenant acme".
	What string
	// Is and Limit are numbers, or sizes in bytes. Is may be the first number above the limit, because counting stops there.
	Is, Limit int64
}

// Error says what is too much, and which field administrators can raise, if there is one.
func (e *Exceeded) Error() string {
	f := e.Field
	if e.Limit >= f.most {
		return fmt.Sprintf("%s: %s, and more than %s are not possible; remove some in Git", e.What, f.Text(e.Is), f.Text(e.Limit))
	}
	return fmt.Sprintf("%s: %s, and the limit is %s; remove some, or ask an administrator of the cluster for more with spec.limits.%s of the Tenant, "+
		"in tenant.yaml of the platform repository", e.What, f.Text(e.Is), f.Text(e.Limit), f.Name)
}
