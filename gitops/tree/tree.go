// Package tree reads what a commit declares: Tenants, Projects and Apps, each checked against its place in the
// repository and against the CustomResourceDefinition it will become an object of. It reads files and nothing else: no
// network, no cluster, no clock.
package tree

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Files is a commit's tree. Symbolic links show as fs.ModeSymlink and submodules as fs.ModeIrregular.
type Files interface {
	fs.FS
	// Digest is the Git hash of the file or folder: equal hashes mean equal content.
	Digest(path string) (string, error)
}

// Scope says which repository is read and as what.
type Scope struct {
	// Repository is the name of the Repository object.
	Repository string
	// Tenant the repository is bound to. Empty for the platform repository, which alone may declare Tenants.
	Tenant string
	// Path is where the files begin in the repository, empty for its root. It is put before every file and folder
	// that is reported; the files themselves are given from there on.
	Path string
	// Revision being read, as "branch@sha1:<commit>".
	Revision string
}

// Tree is what a commit declares. The objects are stamped with their kind, namespace, labels and annotations, and hold
// nothing the file does not say: defaults are left to the API server. Each list is sorted by tenant, project and app.
type Tree struct {
	Tenants  []*v1alpha1.Tenant
	Projects []*v1alpha1.Project
	Apps     []*v1alpha1.App
	// Problems are sorted by file and line. What a problem holds back is not in the lists above.
	Problems []Problem
}

// Problem is one thing wrong with a commit.
type Problem struct {
	// File from the root of the repository.
	File string
	// Line in the file from 1; 0 when the problem is the file itself.
	Line int
	// Why says what is wrong and what to do.
	Why string
	// Tenant and Project are the smallest unit that keeps its last good state because of this. A project is held with
	// all its apps, a tenant with all its projects; both empty hold the whole repository.
	Tenant, Project string
	// Err is the error of the store when this could not be read: reading again may help. Nil when only another commit
	// can.
	Err error
}

// String returns "file:line: why".
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Why)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Why)
}

// Holds reports whether the problem holds back what belongs to the tenant and project. An empty project asks for the
// tenant itself, which a problem in one of its projects does not hold.
func (p Problem) Holds(tenant, project string) bool {
	if p.Tenant == "" {
		return true
	}
	return p.Tenant == tenant && (p.Project == "" || p.Project == project)
}

// Reader reads commits. It remembers the verdicts of the last commit of each repository, so that a commit costs what it
// changed. Safe for concurrent use.
type Reader struct {
	kinds map[string]*kind

	mutex sync.Mutex
	seen  map[string]memory
}

// NewReader compiles the schemas and rules of the embedded CustomResourceDefinitions, once for all reading.
func NewReader() (*Reader, error) {
	kinds, err := compileKinds()
	if err != nil {
		return nil, err
	}
	return &Reader{kinds: kinds, seen: map[string]memory{}}, nil
}

// Forget drops what is remembered of a repository that is gone.
func (r *Reader) Forget(repository string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.seen, repository)
}

// Read reads and checks all the files. It always returns a tree; what is wrong is in its Problems.
func (r *Reader) Read(files Files, scope Scope) *Tree {
	p := &pass{kinds: r.kinds, files: files, scope: scope, last: r.lastOf(scope.Repository), next: memory{}, tree: &Tree{}}
	p.readRoot()
	p.reportRings()
	p.dropHeld()
	p.sort()
	r.remember(scope.Repository, p.next)
	return p.tree
}

// dropHeld removes the objects of units that a problem holds back.
func (p *pass) dropHeld() {
	held := func(tenant, project string) bool {
		return slices.ContainsFunc(p.tree.Problems, func(q Problem) bool { return q.Holds(tenant, project) })
	}
	p.tree.Tenants = slices.DeleteFunc(p.tree.Tenants, func(t *v1alpha1.Tenant) bool { return held(t.Name, "") })
	p.tree.Projects = slices.DeleteFunc(p.tree.Projects, func(o *v1alpha1.Project) bool {
		return held(o.Labels[v1alpha1.TenantLabel], o.Name)
	})
	p.tree.Apps = slices.DeleteFunc(p.tree.Apps, func(a *v1alpha1.App) bool {
		return held(a.Labels[v1alpha1.TenantLabel], a.Labels[v1alpha1.ProjectLabel])
	})
}

func (p *pass) sort() {
	slices.SortFunc(p.tree.Tenants, func(a, b *v1alpha1.Tenant) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(p.tree.Projects, func(a, b *v1alpha1.Project) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.tree.Apps, func(a, b *v1alpha1.App) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.tree.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Why, b.Why))
	})
}
