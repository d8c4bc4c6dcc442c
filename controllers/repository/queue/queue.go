// Package queue has the objects of a commit that are still to be compared with the cluster, in the order of Git.
package queue

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/gitops/identity"
)

// Queue is a set of objects in the order of Git.
type Queue struct {
	in     sets.Set[identity.Ref]
	sorted []identity.Ref
	dirty  bool
}

// New returns an empty Queue.
func New() *Queue { return &Queue{in: sets.New[identity.Ref]()} }

// Has reports whether an object is in the queue, and Len how many are.
func (q *Queue) Has(ref identity.Ref) bool { return q.in.Has(ref) }

// Len is the number of objects.
func (q *Queue) Len() int { return q.in.Len() }

// Add adds an object; one that is there stays where it is.
func (q *Queue) Add(ref identity.Ref) {
	if q.in.Has(ref) {
		return
	}
	q.in.Insert(ref)
	q.sorted = append(q.sorted, ref)
	q.dirty = true
}

// Remove removes an object.
func (q *Queue) Remove(ref identity.Ref) { q.in.Delete(ref) }

// All returns the objects in the order of Git. Removing objects later does not change the returned slice.
func (q *Queue) All() []identity.Ref {
	if q.dirty {
		slices.SortFunc(q.sorted, InOrder)
		q.sorted, q.dirty = slices.Compact(q.sorted), false
	}
	if len(q.sorted) > q.in.Len() {
		q.sorted = slices.DeleteFunc(q.sorted, func(r identity.Ref) bool { return !q.in.Has(r) })
	}
	return q.sorted
}

// InOrder sorts clusters, price lists, registries and policies first, and then as Git does: a tenant or project comes before its contents, and these before the next tenant or project.
func InOrder(a, b identity.Ref) int {
	return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Project, b.Project), strings.Compare(a.App, b.App), strings.Compare(a.Policy, b.Policy),
		strings.Compare(a.Registry, b.Registry), strings.Compare(a.PriceList, b.PriceList), strings.Compare(a.Cluster, b.Cluster))
}
