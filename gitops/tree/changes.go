package tree

import (
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/merge"
)

// Changes calls changed with every object whose folder is new, changed or deleted: first the policies, the registries, the price lists and the clusters, then the others in the order
// of Git, parents first. before is nil if there is no earlier tree. Unchanged folders are not visited.
func Changes(before, after *Tree, changed func(identity.Ref)) {
	var was []*Tenant
	var policies, registries, prices, clusters []*Definition
	if before != nil && before.Scope == after.Scope {
		was, policies, registries, prices, clusters = before.Tenants, before.Policies, before.Registries, before.PriceLists, before.Clusters
	}
	file := func(b, a *Definition) { changed(refOf(b, a)) }
	both(policies, after.Policies, file)
	both(registries, after.Registries, file)
	both(prices, after.PriceLists, file)
	both(clusters, after.Clusters, file)
	both(was, after.Tenants, func(b, a *Tenant) {
		var projects, earlier []*Project
		if b != nil {
			earlier = b.Projects
		}
		if a != nil {
			projects = a.Projects
		}
		if !implicit(b, a) && differ(b, a) {
			changed(refOf(b, a))
		}
		both(earlier, projects, func(b, a *Project) { changesOf(b, a, changed) })
	})
}

// implicit reports whether one of two nodes of a tenant declares no Tenant. A nil node does not count.
func implicit(b, a *Tenant) bool {
	return b != nil && b.implicit || a != nil && a.implicit
}

func changesOf(b, a *Project, changed func(identity.Ref)) {
	var apps, earlier []*App
	if b != nil {
		earlier = b.Apps
	}
	if a != nil {
		apps = a.Apps
	}
	if differ(b, a) {
		changed(refOf(b, a))
	}
	both(earlier, apps, func(b, a *App) { changed(refOf(b, a)) })
}

// both calls f with each pair of nodes that differ, see merge.Differ.
func both[N named](before, after []N, f func(b, a N)) { merge.Differ(before, after, N.name, f) }

// differ reports whether the object itself changed, or has or had problems. Different nodes do not suffice: the node of a Tenant or Project
// is also new when something below it changed.
func differ[N named](b, a N) bool {
	var none N
	if b == none || a == none {
		return true
	}
	was, is := b.self(), a.self()
	return was.file != is.file || was.Declared() != is.Declared() || len(was.problems)+len(is.problems) > 0
}

func refOf[N named](b, a N) identity.Ref {
	var none N
	if a != none {
		return a.Ref()
	}
	return b.Ref()
}

// Shares reports whether the trees have an object in common. It stops at the first one.
func (t *Tree) Shares(other *Tree) (shared bool) {
	other.Walk(func(n Node) bool {
		_, shared = t.Find(n.Ref())
		return !shared
	})
	return shared
}

// Walk calls f with the node of every object, until f returns false: first the policies, the registries, the price lists and the clusters, then the others in the
// order of Git.
func (t *Tree) Walk(f func(Node) bool) {
	for _, d := range t.definitions() {
		if !f(d) {
			return
		}
	}
	for _, tenant := range t.Tenants {
		if !tenant.walk(f) {
			return
		}
	}
}

func (t *Tenant) walk(f func(Node) bool) bool {
	if !t.implicit && !f(t) {
		return false
	}
	for _, project := range t.Projects {
		if !f(project) {
			return false
		}
		for _, app := range project.Apps {
			if !f(app) {
				return false
			}
		}
	}
	return true
}
