package queue

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Over are the objects that limits hold back, by tenant, with the limits and the usage of the tenant at the last check. The objects are not
// checked again before one of these changes.
type Over map[string]*Held

// Held are those of one tenant.
type Held struct {
	Refs   sets.Set[identity.Ref]
	Limits budget.Limits
	Sums   budget.Sums
	// Refusals are those for the tenant's budget.
	Refusals string
}

// Has reports whether limits hold an object back.
func (o Over) Has(ref identity.Ref) bool { return o[ref.Tenant] != nil && o[ref.Tenant].Refs.Has(ref) }

// Add adds an object.
func (o Over) Add(ref identity.Ref) {
	if o[ref.Tenant] == nil {
		o[ref.Tenant] = &Held{Refs: sets.New[identity.Ref]()}
	}
	o[ref.Tenant].Refs.Insert(ref)
}

// Drop removes an object.
func (o Over) Drop(ref identity.Ref) {
	if held := o[ref.Tenant]; held != nil {
		if held.Refs.Delete(ref); held.Refs.Len() == 0 {
			delete(o, ref.Tenant)
		}
	}
}
