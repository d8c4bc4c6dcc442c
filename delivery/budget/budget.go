// Package budget says how much one tenant may make the platform keep and work on, in plain numbers. Those that count get a Limits
// and return an Exceeded for what is over one.
package budget

import (
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Limits of one tenant. Bytes are bytes; every number is the most that is let through.
type Limits struct {
	// Projects and Apps are how many there may be.
	Projects, Apps int64
	// TreeBytes is the size of the files that declare them, see Declared.
	TreeBytes int64
	// App bounds each of its apps.
	App App
	// SourceBytes is what is kept of the apps' sources on the operator's disk.
	SourceBytes int64
	// PackBytes is what the Git objects of one fetch inflate to.
	PackBytes int64
	// RenderedBytes is the size of what all its apps deliver.
	RenderedBytes int64
	// StoreBytes is what the objects in its namespaces take in the API server's store, see quota.Bound.
	StoreBytes int64
}

// App are the limits of one app: the objects that it may hold, and the bytes and the values of YAML (mappings, lists and scalars) of
// their manifests, as they are read and as they are rendered.
type App struct{ Objects, Bytes, Values int64 }

// Default are the limits of a tenant for which none are set.
func Default() Limits {
	return Limits{
		Projects: 50, Apps: 500, TreeBytes: 8 << 20,
		App:         App{Objects: 5000, Bytes: 8 << 20, Values: 500_000},
		SourceBytes: 2 << 30, PackBytes: 1 << 30, RenderedBytes: 64 << 20, StoreBytes: 96 << 20,
	}
}

// leastDeclared is what a file counts that declares a Project or an App, in bytes, however small it is: that much is remembered of it.
const leastDeclared = 1 << 10

// Declared is what a file counts in TreeBytes that has a size of so many bytes.
func Declared(size int64) int64 { return max(size, leastDeclared) }

// With returns the limits with those that were set in their place.
func (l Limits) With(set *v1alpha1.TenantLimits) Limits {
	for _, f := range fields {
		if value, ok := f.set(set); ok {
			*f.in(&l) = value
		}
	}
	return l
}

// Check finds what the API server would refuse in the spec of a Tenant. The error names the field and what it may be.
func Check(set *v1alpha1.TenantLimits) error {
	for _, f := range fields {
		if value, ok := f.set(set); ok && (value < f.least || value > f.most) {
			return fmt.Errorf("%s is %s; it may be %s to %s", f.Name, f.Text(value), f.Text(f.least), f.Text(f.most))
		}
	}
	return nil
}

// Exceeded is a limit that was passed.
type Exceeded struct {
	// Field of spec.limits of the Tenant.
	Field Field
	// What is too much, for people: "project.yaml and app.yaml files of tenant acme".
	What string
	// Is and Limit are numbers, or bytes. Is may be the first number that was over the limit: counting ends there.
	Is, Limit int64
}

// Error says what is too much, and where administrators allow more, if they can.
func (e *Exceeded) Error() string {
	f := e.Field
	if e.Limit >= f.most {
		return fmt.Sprintf("%s: %s, and more than %s are not possible; remove some", e.What, f.Text(e.Is), f.Text(e.Limit))
	}
	return fmt.Sprintf("%s: %s, and the limit is %s; remove some, or ask an administrator of the cluster for more with spec.limits.%s of the Tenant",
		e.What, f.Text(e.Is), f.Text(e.Limit), f.Name)
}
