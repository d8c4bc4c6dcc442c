package repository

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// progress is how far the newest commit of a repository has been carried out. It is of this process: a new one compares
// everything once, and writes nothing where the cluster is as it should be.
type progress struct {
	// tree is what the commit of this revision declares, the last one that could be understood; nil before the first time.
	tree     *tree.Tree
	revision string
	// pending are the objects to compare with the cluster, in the order of Git.
	pending pending
	// waiting are those of them that have no namespace yet, and since when.
	waiting map[identity.Ref]time.Time
	// gone are objects that left the tree and may still be in the cluster.
	gone sets.Set[identity.Ref]
	// foreign: nothing of what is there is declared in the tree. One of another place is not declared before that was let go.
	foreign bool
	// weighed is the last verdict that deleted nothing.
	weighed weighed
	// announced is the commit of which the status said that it is read.
	announced string
	// told is when the status last said how far it came.
	told time.Time
	// refused are the problems that the API server found in objects that are sound by themselves.
	refused map[identity.Ref]tree.Problem
	// over are the objects that limits of their tenants hold back.
	over over
	// applied are what was applied a moment ago, which the cache may not show yet.
	applied map[identity.Ref]applied
}

func newProgress() *progress {
	return &progress{pending: pending{in: sets.New[identity.Ref]()}, waiting: map[identity.Ref]time.Time{}, gone: sets.New[identity.Ref](),
		refused: map[identity.Ref]tree.Problem{}, over: over{}, applied: map[identity.Ref]applied{}}
}

// look has an object compared with the cluster.
func (p *progress) look(refs ...identity.Ref) {
	for _, ref := range refs {
		p.pending.add(ref)
		p.over.drop(ref)
		delete(p.refused, ref)
	}
}

// done ends what is known about an object that is as it should be.
func (p *progress) done(ref identity.Ref) {
	p.pending.remove(ref)
	delete(p.waiting, ref)
}

// left notes that an object is not in the tree any more, and may still be in the cluster.
func (p *progress) left(ref identity.Ref) {
	p.done(ref)
	p.over.drop(ref)
	delete(p.refused, ref)
	p.gone.Insert(ref)
}

// wait notes that an object has no namespace yet.
func (p *progress) wait(ref identity.Ref, now time.Time) {
	if _, known := p.waiting[ref]; !known {
		p.waiting[ref] = now
	}
}

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

// all returns the objects in the order of Git. Those that are removed meanwhile stay in what was returned.
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

// inOrder sorts as Git does: what is inside comes after what it is in, and before what comes next.
func inOrder(a, b identity.Ref) int {
	return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Project, b.Project), strings.Compare(a.App, b.App))
}

// records hold the progress of each Repository, by UID, and what people changed since it was last worked on.
type records struct {
	mu      sync.Mutex
	of      map[types.UID]*progress
	touched map[string]sets.Set[identity.Ref]
}

// begin returns the progress of a repository, with what people touched since in it. The caller works on it alone: a
// repository is reconciled once at a time.
func (r *records) begin(uid types.UID, name string) *progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of, r.touched = map[types.UID]*progress{}, map[string]sets.Set[identity.Ref]{}
	}
	p := r.of[uid]
	if p == nil {
		p = newProgress()
		r.of[uid] = p
	}
	if p.tree != nil { // Else everything is looked at anyway.
		p.look(r.touched[name].UnsortedList()...)
	}
	delete(r.touched, name)
	return p
}

// touch notes that an object of a repository was changed.
func (r *records) touch(name string, ref identity.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.touched == nil {
		r.of, r.touched = map[types.UID]*progress{}, map[string]sets.Set[identity.Ref]{}
	}
	if r.touched[name] == nil {
		r.touched[name] = sets.New[identity.Ref]()
	}
	r.touched[name].Insert(ref)
}

// forget drops a repository that goes.
func (r *records) forget(uid types.UID, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, uid)
	delete(r.touched, name)
}
