package tree

import (
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Reader reads commits. Safe for concurrent use.
type Reader struct {
	// Limits are the limits of tenants without limits of their own. They are set before the first reading.
	Limits budget.Limits
	// Platform has the folder platform/ of the platform repository read, with the projects of the platform itself. It is set before the
	// first reading. Without it nothing is read from there.
	Platform bool
	kinds    check.Kinds
}

// NewReader compiles the schemas and rules of the embedded CustomResourceDefinitions, once for all reading.
func NewReader() (*Reader, error) {
	kinds, err := check.Compile()
	if err != nil {
		return nil, err
	}
	return &Reader{kinds: kinds, Limits: budget.Default()}, nil
}

// Read reads and checks all the files that are not the same as in an earlier tree, which is nil for none: the rest is taken
// over from it. It always returns a tree; what is wrong is in its problems.
func (r *Reader) Read(files Files, scope Scope, before *Tree) *Tree {
	if before == nil || before.Scope != scope {
		before = &Tree{}
	}
	p := &pass{kinds: r.kinds, limits: r.Limits, root: files, files: files, scope: scope, platform: r.Platform, accepted: before.accepted}
	t := &Tree{Scope: scope, Limits: r.Limits, Platform: r.Platform && scope.Tenant == ""}
	p.readRoot(t, before)
	t.count()
	return t
}

// Within returns the reader with other limits, for a tenant's own repository. In the platform repository each tenant.yaml has its own
// limits.
func (r *Reader) Within(limits budget.Limits) *Reader {
	within := *r
	within.Limits = limits
	return &within
}

// Accepted is the tree to give Read before the first one: of all there was, it knows only what the API server accepted, as the
// annotation TreeAnnotation of the live objects says. What has the same digest is not held against schema and rules again, which
// is most of the work of reading a commit.
func Accepted(scope Scope, digests map[identity.Ref]string) *Tree {
	return &Tree{Scope: scope, accepted: digests}
}
