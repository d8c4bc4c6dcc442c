// Package tree reads what a commit declares: Policies, Registries, PriceLists, Clusters, Tenants, Projects and Apps. Each is checked against its path in the repository and against the
// CustomResourceDefinition of its kind. The package reads only files: no network, no cluster, no clock.
//
// A Tree is persistent: a folder that did not change between two commits is the same node in both trees. So reading a commit costs as much
// as the commit changed, and Changes does not visit unchanged folders.
package tree

import (
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Files are the files of a commit.
type Files = files.Files

// Scope is the repository that is read, and the tenant that it declares.
type Scope struct {
	// Repository is the name of the Repository object.
	Repository string
	// Tenant the repository is bound to. Empty for the platform repository, which alone may declare Tenants.
	Tenant string
	// Path is the folder of the repository that is read; empty for its root. Reported paths of files and folders start with Path; paths
	// passed to Files do not.
	Path string
}

// Tree is what a commit declares. It is not changed after Read returned it.
type Tree struct {
	Scope Scope
	// Limits are those of the Reader that read the tree.
	Limits budget.Limits
	// Problems are about the repository as a whole: if there is one, nothing of the commit is used.
	Problems []Problem
	// Strays report files and folders from which nothing is read. They do not keep any object from changing.
	Strays []Problem
	Definitions
	// Tenants are sorted by name. The tenant of its own repository and the platform itself are listed without a Tenant object.
	Tenants []*Tenant
	// Unknown: the folder of the tenants could not be read, so the commit may declare objects that Tenants does not have.
	Unknown bool
	// Platform: the projects of the platform itself were read, see Reader.Platform.
	Platform bool

	layout node
	counts Counts
	// contradictions are those of the policies of each tenant, by the names of the policies. They are found again only if a policy changed.
	contradictions map[string]string
	placed
	// accepted is set only in the tree that Accepted returns.
	accepted map[identity.Ref]string
}

// Definitions are the objects that have a file of their own, sorted by name. Only the platform repository has some.
type Definitions struct {
	Policies, Registries, PriceLists, Clusters []*Definition
	// Of these kinds the folder could not be read, so the commit may declare objects that the lists do not have.
	PoliciesUnknown, RegistriesUnknown, PriceListsUnknown, ClustersUnknown bool
}

// Tenant is the folder of a tenant.
type Tenant struct {
	node
	// Projects are sorted by name; Unknown is as in Tree.
	Projects []*Project
	Strays   []Problem
	Unknown  bool

	// implicit: the folder declares projects, but no Tenant. It is that of a tenant with its own repository, or of the platform itself.
	implicit bool
	terms
	// asRead is the tenant as its folder declares it, if this one is refused because of another file; nil otherwise.
	asRead *Tenant
	counts Counts
}

// Project is the folder of a project.
type Project struct {
	node
	// Apps are sorted by name; Unknown is as in Tree.
	Apps    []*App
	Strays  []Problem
	Unknown bool

	// cluster is its spec.cluster.
	cluster string
	counts  Counts
}

// App is the folder of an app.
type App struct {
	node
	// DependsOn are the apps on which this app depends.
	DependsOn []identity.Ref

	// asRead is the app as its folder declares it, if this one is refused because it depends on itself; nil otherwise.
	asRead *App
}

// node is a folder that stands for an object. The node of a Definition is its file.
type node struct {
	ref identity.Ref
	dir string
	// digest of the folder.
	digest string
	// file is the digest of the file that declares the object. An App is checked as a whole, so for an App it is the digest of its folder.
	file string
	// object is the object of the node as JSON, which takes a tenth of the memory of the typed object. Nil if there is no such object
	// or it has problems.
	object   []byte
	problems []Problem
	// spent is how much of the tenant's budget the folder takes, with all below it. over: the folder exceeded the limit. size is the size
	// of the object in bytes, also if the object is not kept.
	spent, size int64
	over        bool
	// origin is set for the project of a preview.
	origin *Origin
	// field is where the file has the field that messages about the object in the cluster name: spec.budget of a Tenant, spec.cluster of a Project, or spec.secretRef of a Registry.
	field yamlcheck.Position
}

// Ref names the object that a folder stands for.
func (n *node) Ref() identity.Ref { return n.ref }

// Declared reports whether the commit declares a usable object.
func (n *node) Declared() bool { return n.object != nil }

// Problems are what is wrong with the object. If there is one, the object in the cluster stays as the last valid commit declared it.
func (n *node) Problems() []Problem { return n.problems }

// Node is a folder that stands for an object: a *Tenant, *Project or *App; or a file that does: a *Definition.
type Node interface {
	Ref() identity.Ref
	Declared() bool
	Problems() []Problem
	self() *node
}

func (n *node) self() *node { return n }

// Problem is one thing wrong with a commit: an invalid file, or something in it. Its File is from the root of the repository.
type Problem struct {
	document.Finding
	// Of is the object that is not changed because of this problem; the zero Ref for no object.
	Of identity.Ref
}

// String returns "file:line:column: why [code]".
func (p Problem) String() string { return p.Place() + ": " + p.Why + " [" + string(p.Code) + "]" }

// All calls f with every problem, folder by folder, until f returns false. Folders without problems are skipped.
func (t *Tree) All(f func(Problem) bool) {
	all := func(lists ...[]Problem) bool {
		return !slices.ContainsFunc(slices.Concat(lists...), func(p Problem) bool { return !f(p) })
	}
	if t.counts.Problems == 0 || !all(t.Problems, t.Strays) {
		return
	}
	for _, d := range t.definitions() {
		if !all(d.problems) {
			return
		}
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
		if project.counts.Problems > 0 && !all(project.AllProblems()) {
			return false
		}
	}
	return true
}

// AllProblems returns what is wrong with the project and its apps.
func (p *Project) AllProblems() []Problem {
	all := slices.Concat(p.problems, p.Strays)
	for _, app := range p.Apps {
		all = append(all, app.problems...)
	}
	return all
}

// Unread returns the first error of the store; nil if everything could be read.
func (t *Tree) Unread() (file string, err error) {
	t.All(func(p Problem) bool {
		if p.Err != nil {
			file, err = p.File, p.Err
		}
		return err == nil
	})
	return file, err
}

// Misplaced returns the first file that looks like a declaration moved to a folder where no object is read from; "" for none.
func (t *Tree) Misplaced() (file string) {
	t.All(func(p Problem) bool {
		if p.Misplaced {
			file = p.File
		}
		return file == ""
	})
	return file
}

// definitions are the policies, the registries, the price lists and the clusters.
func (t *Tree) definitions() []*Definition {
	return slices.Concat(t.Policies, t.Registries, t.PriceLists, t.Clusters)
}

// Usable reports whether the commit as a whole can be used.
func (t *Tree) Usable() bool { return len(t.Problems) == 0 }

// Find returns the folder that stands for an object; false when there is none.
func (t *Tree) Find(ref identity.Ref) (Node, bool) {
	if ref.OneFile() {
		list := map[string][]*Definition{v1alpha1.PolicyKind: t.Policies, v1alpha1.RegistryKind: t.Registries, v1alpha1.PriceListKind: t.PriceLists, v1alpha1.ClusterKind: t.Clusters}[ref.Kind()]
		found := find(list, ref.Key().Name)
		return found, found != nil
	}
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

// Covers reports whether the absence of an object from the tree means that the commit does not declare it. It does not if a folder on the
// object's path could not be read.
func (t *Tree) Covers(ref identity.Ref) bool {
	switch {
	case !t.Usable():
		return false
	case ref.Policy != "":
		return !t.PoliciesUnknown
	case ref.Registry != "":
		return !t.RegistriesUnknown
	case ref.PriceList != "":
		return !t.PriceListsUnknown
	case ref.Cluster != "":
		return !t.ClustersUnknown
	case t.Unknown || ref.Tenant == v1alpha1.PlatformTenant && !t.Platform:
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

// find returns the folder with that name in a sorted list; nil if there is none.
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

// incomplete reports whether something in the folder could not be read, so that the folder must be read again even if it is unchanged.
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
