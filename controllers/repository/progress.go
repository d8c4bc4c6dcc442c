package repository

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/controllers/repository/queue"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
)

// progress is how far the newest commit of a repository has been applied. It is in memory only: a new process compares everything once, and
// writes nothing if the cluster is as declared.
type progress struct {
	// tree is the content of the last valid commit, and revision is its name; nil before the first one.
	tree     *tree.Tree
	revision string
	// pending are the objects to compare with the cluster, in the order of Git.
	pending *queue.Queue
	// waiting are the pending objects that have no namespace yet, with the time since when.
	waiting map[identity.Ref]time.Time
	queue.Absence
	// formerApps is the number of apps of each tenant when the first of these left: apps that are created since then make no deletion a small one.
	// Nil if none has left.
	formerApps map[string]int
	// foreign: the tree declares none of the repository's existing objects. If URL or path changed, no object is created before the
	// deletions are confirmed.
	foreign bool
	// weighed is the last verdict that deleted nothing.
	weighed weighed
	// confirmed is what a person confirmed to delete; some of it may be left.
	confirmed plan.Confirmed
	// reviewed is the last commit that waited for the end of a freeze.
	reviewed reviewed
	// announced is the last commit that the status reported as being read.
	announced string
	// reported is when the status last reported the progress.
	reported time.Time
	// refused are the problems that the API server reported for objects that are valid by themselves.
	refused map[identity.Ref]tree.Problem
	// over are the objects that limits of their tenants hold back.
	over queue.Over
	// applied are the objects that were applied just now and that the cache may not show yet.
	applied map[identity.Ref]applied
}

func newProgress() *progress {
	return &progress{pending: queue.New(), waiting: map[identity.Ref]time.Time{},
		Absence: queue.NewAbsence(),
		refused: map[identity.Ref]tree.Problem{}, over: queue.Over{}, applied: map[identity.Ref]applied{}}
}

// look marks objects to be compared with the cluster.
func (p *progress) look(refs ...identity.Ref) {
	for _, ref := range refs {
		p.pending.Add(ref)
		p.over.Drop(ref)
		delete(p.refused, ref)
	}
}

// done removes an object that is as declared from the pending ones.
func (p *progress) done(ref identity.Ref) {
	p.pending.Remove(ref)
	delete(p.waiting, ref)
}

// left records that an object left the tree, and may still exist in the cluster.
func (p *progress) left(ref identity.Ref) {
	p.done(ref)
	p.over.Drop(ref)
	delete(p.refused, ref)
	p.Gone.Insert(ref)
}

// changed marks objects of which the cache has shown a change or the deletion to be compared with the cluster. If an object is in the tree, or left it a moment
// ago, it may have been applied after that change.
func (p *progress) changed(refs ...identity.Ref) {
	for _, ref := range refs {
		if _, there := p.tree.Find(ref); !there && !p.Gone.Has(ref) {
			p.Shown.Insert(ref)
		}
	}
	p.look(refs...)
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
	p.over.Add(ref)
}

// refuse records a problem of an object that is valid by itself: the API server does not accept it, or it is over a limit.
func (p *progress) refuse(ref identity.Ref, kind code.Code, err error) {
	p.refuseAt(yamlcheck.Position{}, ref, kind, err)
}

// refuseAt is refuse with the position in the file.
func (p *progress) refuseAt(at yamlcheck.Position, ref identity.Ref, kind code.Code, err error) {
	node, _ := p.tree.Find(ref)
	why := err.Error()
	if from := p.tree.OriginOf(ref); from != nil && ref.App != "" { // The project of a preview is made from what the commit itself says.
		why = from.Prefix() + why
	}
	p.refused[ref] = tree.Problem{Finding: document.Finding{File: p.tree.File(node), Position: at, Code: kind, Why: why}, Of: ref}
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
		p.changed(r.touched[name].UnsortedList()...)
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
