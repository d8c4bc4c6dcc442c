package tree

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Reader reads commits. Safe for concurrent use.
type Reader struct {
	// Limits are for tenants without limits of their own. Set them before the first Read.
	Limits budget.Limits
	// Platform: read the projects of the platform itself, from the folder platform/ of the platform repository. Set it before the first
	// Read.
	Platform bool
	// Domains returns the domains that each tenant has in the cluster: a tenant keeps them when another one names a domain that overlaps with them. Nil:
	// that is not known. Set it before the first Read.
	Domains func() (map[string][]string, error)
	// Placement says which projects are read. Set it before the first Read.
	Placement Placement
	kinds     check.Kinds
}

// NewReader compiles the schemas and CEL rules of the embedded CustomResourceDefinitions.
func NewReader() (*Reader, error) {
	kinds, err := check.Compile()
	if err != nil {
		return nil, err
	}
	return &Reader{kinds: kinds, Limits: budget.Default()}, nil
}

// Read reads and checks all files that changed since the tree before, which is nil if there is none. The nodes of unchanged folders are
// reused. Read always returns a tree; what is wrong is in its problems.
func (r *Reader) Read(files Files, scope Scope, before *Tree) *Tree {
	if before == nil || before.Scope != scope {
		before = &Tree{}
	}
	if before.whole != nil {
		before = before.whole
	}
	p := &pass{kinds: r.kinds, limits: r.Limits, root: files, files: files, scope: scope, platform: r.Platform, domains: r.held, placement: r.Placement, accepted: before.accepted}
	t := &Tree{Scope: scope, Limits: r.Limits, Platform: r.Platform && scope.Tenant == "", placed: placed{placement: r.Placement}}
	p.readRoot(t, before)
	t.count()
	return p.place(t)
}

// held are the domains that each tenant has in the cluster; none if that is not known.
func (r *Reader) held() (map[string][]string, error) {
	if r.Domains == nil {
		return nil, nil
	}
	return r.Domains()
}

// Default sets the defaults of an object that a tree declares, as the API server does.
func (r *Reader) Default(o client.Object) (client.Object, error) { return r.kinds.Default(o) }

// Within returns a copy of the reader with other limits, for a tenant's own repository. In the platform repository, each tenant.yaml sets
// the limits.
func (r *Reader) Within(limits budget.Limits) *Reader {
	within := *r
	within.Limits = limits
	return &within
}

// Accepted returns a tree to pass to the first Read of a process. It knows only which files the API server has accepted, from the
// annotation TreeAnnotation of the live objects. Read does not check a file with the same digest against the schema and the CEL rules
// again, which is most of the work of reading a commit.
func Accepted(scope Scope, digests map[identity.Ref]string) *Tree {
	return &Tree{Scope: scope, accepted: digests}
}
