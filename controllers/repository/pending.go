package repository

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/gitops/identity"
)

// pending is a set of objects in the order of Git.
type pending struct {
	in     sets.Set[identity.Ref]
	sorted []identity.Ref
	dirty  bool
}

func (p *pending) has(ref identity.Ref) bool { return p.in.Has(ref) }

func (p *pending) add(ref identity.Ref) {
	if p.in.Has(ref) {
		return
	}
	p.in.Insert(ref)
	p.sorted = append(p.sorted, ref)
	p.dirty = true
}

func (p *pending) remove(ref identity.Ref) { p.in.Delete(ref) }

// all returns the objects in the order of Git. Removing objects later does not change the returned slice.
func (p *pending) all() []identity.Ref {
	if p.dirty {
		slices.SortFunc(p.sorted, inOrder)
		p.sorted, p.dirty = slices.Compact(p.sorted), false
	}
	if len(p.sorted) > p.in.Len() {
		p.sorted = slices.DeleteFunc(p.sorted, func(r identity.Ref) bool { return !p.in.Has(r) })
	}
	return p.sorted
}

// inOrder sorts as Git does: a tenant or project comes before its contents, and these before the next tenant or project.
func inOrder(a, b identity.Ref) int {
	return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Project, b.Project), strings.Compare(a.App, b.App))
}
