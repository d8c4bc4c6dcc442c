package plan

import (
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/gitops/tree"
)

// record is a recorded entry with what its ID says. The ID says it all: a namespace is named after its tenant and
// project.
type record struct {
	entry v1alpha1.InventoryEntry
	id    apply.ObjectID
	// tenant is empty when the ID is not one this package writes; project is empty for a Tenant.
	tenant, project string
}

func records(recorded []v1alpha1.InventoryEntry) []record {
	all := make([]record, 0, len(recorded))
	for _, e := range recorded {
		all = append(all, read(e))
	}
	return all
}

// read understands an entry as far as it can.
func read(e v1alpha1.InventoryEntry) record {
	r := record{entry: e}
	id, err := apply.ParseObjectID(e.ID)
	if err != nil {
		return r
	}
	r.id = id
	if id.Group != v1alpha1.GroupVersion.Group {
		return r
	}
	home, inHome := strings.CutPrefix(id.Namespace, v1alpha1.HomeNamespace(""))
	switch {
	case id.Kind == v1alpha1.TenantKind && id.Namespace == "":
		r.tenant = id.Name
	case id.Kind == v1alpha1.ProjectKind && inHome:
		r.tenant, r.project = home, id.Name
	case id.Kind == v1alpha1.AppKind && inHome:
		r.tenant, r.project, _ = strings.Cut(home, "-") // a tenant's name holds no dash
	}
	return r
}

// ours reports whether the entry is one this package understands. Another version may have recorded what this one does
// not know; deleting that would be a guess.
func (r record) ours() bool {
	return r.tenant != "" && (r.project != "" || r.id.Kind == v1alpha1.TenantKind)
}

// protected reports whether a problem keeps the object in its last good state. A Tenant is kept for a problem in any of
// its projects too: it would take that project along.
func (r record) protected(problems []tree.Problem) bool {
	return slices.ContainsFunc(problems, func(p tree.Problem) bool {
		return p.Holds(r.tenant, r.project) || (r.id.Kind == v1alpha1.TenantKind && p.Tenant == r.tenant)
	})
}

// impliedBy reports whether a Project or Tenant among those that go takes this object along.
func (r record) impliedBy(gone []record) bool {
	return slices.ContainsFunc(gone, func(g record) bool {
		if g.tenant != r.tenant || g.rank() <= r.rank() {
			return false
		}
		return g.id.Kind == v1alpha1.TenantKind || g.project == r.project
	})
}

// rank orders deletions: what is inside goes first.
func (r record) rank() int {
	switch r.id.Kind {
	case v1alpha1.AppKind:
		return 0
	case v1alpha1.ProjectKind:
		return 1
	}
	return 2
}
