// Package tree reads what a commit declares: Tenants, Projects and Apps, each checked against its place in the
// repository and against the CustomResourceDefinition it will become an object of. It reads files and nothing else: no
// network, no cluster, no clock.
//
// A Tree is persistent: what did not change between two commits is the same node in both. So a reading costs what the
// commit changed, and Changes finds what that is without looking at the rest.
package tree

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Files is a commit's tree. Symbolic links show as fs.ModeSymlink and submodules as fs.ModeIrregular. The entries of a
// folder may have a method Digest() string, which spares a walk to each of them.
type Files interface {
	fs.FS
	// Digest is the Git hash of the file or folder: equal hashes mean equal content.
	Digest(path string) (string, error)
	// Sub returns the folder at path, with limits of its own for what may be listed.
	Sub(path string) (Files, error)
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
}

// Tree is what a commit declares. It is never changed once it was read.
type Tree struct {
	Scope Scope
	// Limits are those with which it was read, see Reader.
	Limits budget.Limits
	// Problems are about the repository itself: while there is one, nothing of the commit is used.
	Problems []Problem
	// Strays are files of which nothing is read. They hold nothing back.
	Strays []Problem
	// Tenants are sorted by name. That of a tenant's own repository declares no Tenant, nor does the platform's.
	Tenants []*Tenant
	// Unknown: the folder of the tenants cannot be used, so what is not in Tenants may well be declared.
	Unknown bool
	// Platform: the projects of the platform itself were read, see Reader.
	Platform bool

	layout node
	counts Counts
	// accepted is all that there is of a tree by Accepted.
	accepted map[identity.Ref]string
}

// Tenant is the folder of a tenant.
type Tenant struct {
	node
	// Projects are sorted by name; Unknown is as in Tree.
	Projects []*Project
	Strays   []Problem
	Unknown  bool

	// implicit: no Tenant is declared here, its projects alone are. It is the tenant of its own repository, or the platform itself.
	implicit bool
	counts   Counts
}

// Project is the folder of a project.
type Project struct {
	node
	// Apps are sorted by name; Unknown is as in Tree.
	Apps    []*App
	Strays  []Problem
	Unknown bool

	counts Counts
}

// App is the folder of an app.
type App struct {
	node
	// DependsOn are the apps that this one depends on.
	DependsOn []identity.Ref

	// asRead is the app as it was read from its folder, where this one is refused because it depends on itself.
	asRead *App
}

// node is a folder that stands for an object.
type node struct {
	ref identity.Ref
	dir string
	// digest is that of the folder.
	digest string
	// file is the digest of the file that object was made from; for an App, which is judged as a whole, of its folder.
	file string
	// object is the Tenant, Project or App as JSON, a tenth of what it takes otherwise, as there are thousands. Nil while it
	// cannot be used, or when nothing declares one.
	object   []byte
	problems []Problem
	// spent is what the folder, with what is below it, takes of the tenant's budget; over: something there was over the limit. size is that of
	// the object, in bytes, also where it is not kept.
	spent, size int64
	over        bool
}

// Ref names the object that a folder stands for.
func (n *node) Ref() identity.Ref { return n.ref }

// Declared reports whether the commit holds an object that can be used.
func (n *node) Declared() bool { return n.object != nil }

// Problems are what is wrong with the object. While there is one, it stays as it last was.
func (n *node) Problems() []Problem { return n.problems }

// Node is a folder that stands for an object: a *Tenant, *Project or *App.
type Node interface {
	Ref() identity.Ref
	Declared() bool
	Problems() []Problem
	self() *node
}

func (n *node) self() *node { return n }

// Counts are how many objects a folder declares, and how many problems there are.
type Counts struct{ Tenants, Projects, Apps, Problems int }

func (c *Counts) add(o Counts) {
	c.Tenants += o.Tenants
	c.Projects += o.Projects
	c.Apps += o.Apps
	c.Problems += o.Problems
}

// Counts of the whole tree.
func (t *Tree) Counts() Counts { return t.counts }

// Objects is how many objects there are in all.
func (c Counts) Objects() int { return c.Tenants + c.Projects + c.Apps }

// Problem is one thing wrong with a commit.
type Problem struct {
	// File from the root of the repository.
	File string
	// Line in the file from 1; 0 when the problem is the file itself.
	Line int
	// Why says what is wrong and what to do.
	Why string
	// Of is the object that stays as it last was because of this; the zero Ref when no object is.
	Of identity.Ref
	// Misplaced: the file is named like one that declares an object, and lies where none is read from. What is missing
	// elsewhere may have been moved here by a slip.
	Misplaced bool
	// Err is the error of the store when this could not be read: reading again may help. Nil when only another commit
	// can.
	Err error
}

// String returns "file:line: why".
func (p Problem) String() string { return p.Place() + ": " + p.Why }

// Place returns "file:line", or "file" where no line is known.
func (p Problem) Place() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// All calls f with every problem, folder by folder, until it returns false. Folders without one cost nothing.
func (t *Tree) All(f func(Problem) bool) {
	all := func(lists ...[]Problem) bool {
		for _, list := range lists {
			if slices.ContainsFunc(list, func(p Problem) bool { return !f(p) }) {
				return false
			}
		}
		return true
	}
	if t.counts.Problems == 0 || !all(t.Problems, t.Strays) {
		return
	}
	for _, tenant := range t.Tenants {
		if tenant.counts.Problems > 0 && !tenant.all(all) {
			return
		}
	}
}

func (t *Tenant) all(all func(...[]Problem) bool) bool {
	if !all(t.problems, t.Strays) {
		return false
	}
	for _, project := range t.Projects {
		if project.counts.Problems == 0 {
			continue
		}
		if !all(project.problems, project.Strays) {
			return false
		}
		for _, app := range project.Apps {
			if !all(app.problems) {
				return false
			}
		}
	}
	return true
}

// Unread is the first error of the store, nil when everything could be read.
func (t *Tree) Unread() (file string, err error) {
	t.All(func(p Problem) bool {
		file, err = p.File, p.Err
		return err == nil
	})
	if err == nil {
		file = ""
	}
	return file, err
}

// Misplaced is the first file that looks like a declaration moved to a place where nothing is read from; "" for none.
func (t *Tree) Misplaced() (file string) {
	t.All(func(p Problem) bool {
		if p.Misplaced {
			file = p.File
		}
		return file == ""
	})
	return file
}

// Usable reports whether the commit as a whole can be understood.
func (t *Tree) Usable() bool { return len(t.Problems) == 0 }

// Find returns the folder that stands for an object; false when there is none.
func (t *Tree) Find(ref identity.Ref) (Node, bool) {
	tenant := find(t.Tenants, ref.Tenant)
	switch {
	case tenant == nil:
		return nil, false
	case ref.Project == "":
		return tenant, !tenant.implicit
	}
	project := find(tenant.Projects, ref.Project)
	switch {
	case project == nil:
		return nil, false
	case ref.App == "":
		return project, true
	}
	app := find(project.Apps, ref.App)
	return app, app != nil
}

// Covers reports whether the tree says what becomes of an object that it has no folder for: nothing on the way to where
// the folder would be is unknown.
func (t *Tree) Covers(ref identity.Ref) bool {
	if !t.Usable() || t.Unknown || ref.Tenant == v1alpha1.PlatformTenant && !t.Platform {
		return false
	}
	tenant := find(t.Tenants, ref.Tenant)
	if tenant == nil || ref.Project == "" {
		return true
	}
	project := find(tenant.Projects, ref.Project)
	if project == nil || ref.App == "" {
		return !tenant.Unknown
	}
	return !project.Unknown
}

// named is a folder in a sorted list.
type named interface {
	comparable
	Node
	name() string
	incomplete() bool
}

func (t *Tenant) name() string  { return t.ref.Tenant }
func (p *Project) name() string { return p.ref.Project }
func (a *App) name() string     { return a.ref.App }

// find returns the folder of that name in a sorted list; nil when there is none.
func find[N named](list []N, name string) (found N) {
	at, ok := slices.BinarySearchFunc(list, name, func(n N, name string) int { return strings.Compare(n.name(), name) })
	if ok {
		found = list[at]
	}
	return found
}

func sortByName[N named](list []N) {
	slices.SortFunc(list, func(a, b N) int { return strings.Compare(a.name(), b.name()) })
}

func nodeOf[N named](n N) *node {
	var none N
	if n == none {
		return &node{}
	}
	return n.self()
}

// count adds up what the tree declares, and sorts the problems.
func (t *Tree) count() {
	sortProblems(t.Problems)
	sortProblems(t.Strays)
	t.counts = Counts{Problems: len(t.Problems) + len(t.Strays)}
	for _, tenant := range t.Tenants {
		t.counts.add(tenant.counts)
	}
}

func (t *Tenant) count() {
	sortProblems(t.Strays)
	t.counts = Counts{Problems: len(t.problems) + len(t.Strays)}
	if t.Declared() {
		t.counts.Tenants = 1
	}
	for _, project := range t.Projects {
		t.counts.add(project.counts)
	}
}

func (p *Project) count() {
	sortProblems(p.Strays)
	p.counts = Counts{Problems: len(p.problems) + len(p.Strays)}
	if p.Declared() {
		p.counts.Projects = 1
	}
	for _, app := range p.Apps {
		p.counts.Problems += len(app.problems)
		if app.Declared() {
			p.counts.Apps++
		}
	}
}

func sortProblems(list []Problem) {
	slices.SortFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Why, b.Why))
	})
}

// incomplete reports whether something could not be read: the same folder may hold more the next time.
func (t *Tenant) incomplete() bool {
	return anyIncomplete(t.problems, t.Strays) || slices.ContainsFunc(t.Projects, (*Project).incomplete)
}

func (p *Project) incomplete() bool {
	return anyIncomplete(p.problems, p.Strays) || slices.ContainsFunc(p.Apps, (*App).incomplete)
}

func (a *App) incomplete() bool { return anyIncomplete(a.problems) }

func anyIncomplete(lists ...[]Problem) bool {
	return slices.ContainsFunc(lists, func(list []Problem) bool {
		return slices.ContainsFunc(list, func(p Problem) bool { return p.Err != nil })
	})
}
