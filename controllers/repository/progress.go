package repository

import (
	"cmp"
	"slices"
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
	// foreign: the tree declares nothing of what the repository declared before. If its URL or path is another one, nothing of the tree
	// is created before the deletions are confirmed.
	foreign bool
	// weighed is the last verdict that deleted nothing.
	weighed weighed
	// announced is the commit that the status last reported as being read.
	announced string
	// reported is when the status last reported the progress.
	reported time.Time
	// refused are the problems that the API server found in objects that are sound by themselves.
	refused map[identity.Ref]tree.Problem
	// over are the objects that limits of their tenants hold back.
	over over
	// applied are the objects applied just now, which the cache may not show yet.
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

// holdOver holds an object back without a problem of its own.
func (p *progress) holdOver(ref identity.Ref) {
	p.done(ref)
	p.over.add(ref)
}

// refuse notes what is wrong with an object that is sound by itself: the API server does not take it, or it is over a limit.
func (p *progress) refuse(ref identity.Ref, err error) {
	node, _ := p.tree.Find(ref)
	p.refused[ref] = tree.Problem{File: p.tree.File(node), Why: err.Error(), Of: ref}
	p.done(ref)
}

// refusals are what the API server refused, in the order of files.
func (p *progress) refusals() []tree.Problem {
	var all []tree.Problem
	for _, problem := range p.refused {
		all = append(all, problem)
	}
	slices.SortFunc(all, func(a, b tree.Problem) int { return cmp.Compare(a.File, b.File) })
	return all
}

// records hold the progress of each Repository, by UID, and what others changed since it was last worked on.
type records struct {
	mu      sync.Mutex
	of      map[types.UID]*progress
	touched map[string]sets.Set[identity.Ref]
}

// begin returns the progress of a repository, with what others changed since in it. The caller works on it alone: a
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
