package repository

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/identity"
)

// over are the objects that limits hold back, by tenant, with the limits and the usage of the tenant at the last check. The objects are not
// checked again before one of these changes.
type over map[string]*heldOver

type heldOver struct {
	refs   sets.Set[identity.Ref]
	limits budget.Limits
	sums   usage.Sums
}

func (o over) has(ref identity.Ref) bool { return o[ref.Tenant] != nil && o[ref.Tenant].refs.Has(ref) }

func (o over) add(ref identity.Ref) {
	if o[ref.Tenant] == nil {
		o[ref.Tenant] = &heldOver{refs: sets.New[identity.Ref]()}
	}
	o[ref.Tenant].refs.Insert(ref)
}

func (o over) drop(ref identity.Ref) {
	if held := o[ref.Tenant]; held != nil {
		if held.refs.Delete(ref); held.refs.Len() == 0 {
			delete(o, ref.Tenant)
		}
	}
}
