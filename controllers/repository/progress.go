package repository

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// progress is how far the newest commit of a repository has been applied. It is in memory only: a new process compares everything once, and
// writes nothing if the cluster is as declared.
type progress struct {
	// tree is the content of the last valid commit, and revision is its name; nil before the first one.
	tree     *tree.Tree
	revision string
	// pending are the objects to compare with the cluster, in the order of Git.
	pending pending
	// waiting are the pending objects that have no namespace yet, with the time since when.
	waiting map[identity.Ref]time.Time
	// gone are objects that left the tree and may still exist in the cluster.
	gone sets.Set[identity.Ref]
	// formerApps is the number of apps of each tenant when the first of these left: apps that are created since then make no deletion a small one.
	// Nil if none has left.
	formerApps map[string]int
	// foreign: the tree declares none of the repository's existing objects. If URL or path changed, no object is created before the
	// deletions are confirmed.
	foreign bool
	// weighed is the last verdict that deleted nothing.
	weighed weighed
	// reviewed is the last commit that waited for the end of a freeze.
	reviewed reviewed
	// announced is the last commit that the status reported as being read.
	announced string
	// reported is when the status last reported the progress.
	reported time.Time
	// refused are the problems that the API server reported for objects that are valid by themselves.
	refused map[identity.Ref]tree.Problem
	// over are the objects that limits of their tenants hold back.
	over over
	// applied are the objects that were applied just now and that the cache may not show yet.
	applied map[identity.Ref]applied
}

func newProgress() *progress {
	return &progress{pending: pending{in: sets.New[identity.Ref]()}, waiting: map[identity.Ref]time.Time{}, gone: sets.New[identity.Ref](),
		refused: map[identity.Ref]tree.Problem{}, over: over{}, applied: map[identity.Ref]applied{}}
}

// look marks objects to be compared with the cluster.
func (p *progress) look(refs ...identity.Ref) {
	for _, ref := range refs {
		p.pending.add(ref)
		p.over.drop(ref)
		delete(p.refused, ref)
	}
}

// done removes an object that is as declared from the pending ones.
func (p *progress) done(ref identity.Ref) {
	p.pending.remove(ref)
	delete(p.waiting, ref)
}

// left records that an object left the tree, and may still exist in the cluster.
func (p *progress) left(ref identity.Ref) {
	p.done(ref)
	p.over.drop(ref)
	delete(p.refused, ref)
	p.gone.Insert(ref)
}

// wait records that an object has no namespace yet.
func (p *progress) wait(ref identity.Ref, now time.Time) {
	if _, known := p.waiting[ref]; !known {
		p.waiting[ref] = now
	}
}

// holdOver holds an object back without reporting a problem for it.
func (p *progress) holdOver(ref identity.Ref) {
	p.done(ref)
	p.over.add(ref)
}

// refuse records a problem of an object that is valid by itself: the API server does not accept it, or it is over a limit.
func (p *progress) refuse(ref identity.Ref, kind code.Code, err error) {
	node, _ := p.tree.Find(ref)
	why := err.Error()
	if from := p.tree.OriginOf(ref); from != nil && ref.App != "" { // The project of a preview is made from what the commit itself says.
		why = from.Prefix() + why
	}
	p.refused[ref] = tree.Problem{File: p.tree.File(node), Code: kind, Why: why, Of: ref}
	p.done(ref)
}

// refusals returns the recorded problems, in the order of files.
func (p *progress) refusals() []tree.Problem {
	return slices.SortedFunc(maps.Values(p.refused), func(a, b tree.Problem) int { return cmp.Compare(a.File, b.File) })
}

// records hold the progress of each Repository, by UID, and the objects that others changed since the last pass.
type records struct {
	mu      sync.Mutex
	of      map[types.UID]*progress
	touched map[string]sets.Set[identity.Ref]
}

// begin returns the progress of a repository, including the changes by others since the last pass. Only the caller uses it, because a
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
	if p.tree != nil { // Without a tree, everything is compared anyway.
		p.look(r.touched[name].UnsortedList()...)
	}
	delete(r.touched, name)
	return p
}

// touch records that someone changed an object of a repository.
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

// forget drops a deleted repository.
func (r *records) forget(uid types.UID, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, uid)
	delete(r.touched, name)
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

// inOrder sorts policies first, and then as Git does: a tenant or project comes before its contents, and these before the next tenant or project.
func inOrder(a, b identity.Ref) int {
	return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Project, b.Project), strings.Compare(a.App, b.App), strings.Compare(a.Policy, b.Policy))
}

// over are the objects that limits hold back, by tenant, with the limits and the usage of the tenant at the last check. The objects are not
// checked again before one of these changes.
type over map[string]*heldOver

type heldOver struct {
	refs   sets.Set[identity.Ref]
	limits budget.Limits
	sums   usage.Sums
}

func (o over) has(ref identity.Ref) bool { return o[ref.Tenant] != nil && o[ref.Tenant].refs.Has(ref) }

func (o over) add(ref identity.Ref) {
	if o[ref.Tenant] == nil {
		o[ref.Tenant] = &heldOver{refs: sets.New[identity.Ref]()}
	}
	o[ref.Tenant].refs.Insert(ref)
}

func (o over) drop(ref identity.Ref) {
	if held := o[ref.Tenant]; held != nil {
		if held.refs.Delete(ref); held.refs.Len() == 0 {
			delete(o, ref.Tenant)
		}
	}
}
