// Package refusal records which Apps and Projects are refused in the newest commit of their repository. Such an object reports with the
// condition Current that it stays at an older version.
//
// The record is in memory only. After a restart, the first reading of each repository fills it; until then an object keeps its condition.
package refusal

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Unit identifies an object that a commit declares by its kind, such as v1alpha1.AppKind, and its key.
type Unit struct {
	Kind string
	client.ObjectKey
}

// Refusal is why a newer version of an object is refused.
type Refusal struct {
	// Revision is the commit with the refused version, as "branch@sha1:<commit>". While the problem stays the same, it is the first known
	// commit with the problem.
	Revision string
	// Place is the first position with a problem, as "file:line:column", or as much of it as is known. Problem says what is wrong there.
	Place, Problem string

	// found: the problem existed when this process first read the repository, so it may be older than Revision.
	found bool
}

// same reports whether a refusal is for this problem.
func (r Refusal) same(place, problem string) bool { return r.Place == place && r.Problem == problem }

// Index holds the refusals of all repositories, and wakes an object when its refusal changes. The zero value is ready. Safe for concurrent
// use.
type Index struct {
	mu sync.Mutex
	// refused has an entry for each repository that this process has read.
	refused map[string]map[Unit]Refusal
	// awaiting has, by repository, the objects that keep the condition Current of an earlier process until this one has read the repository.
	awaiting map[string]map[Unit]bool
	// queues are the controllers' work queues, by kind.
	queues map[string]queue
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Set sets all refusals of a repository, after its newest commit was read completely.
func (r *Index) Set(repository string, refused map[Unit]Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, read := r.refused[repository]
	is := make(map[Unit]Refusal, len(refused))
	for unit, refusal := range refused {
		refusal.found = !read
		if before, known := was[unit]; known && before.same(refusal.Place, refusal.Problem) {
			refusal = before
		}
		is[unit] = refusal
		if was[unit] != refusal {
			r.wake(unit)
		}
	}
	for unit := range was {
		if _, still := is[unit]; !still {
			r.wake(unit)
		}
	}
	for unit := range r.awaiting[repository] {
		r.wake(unit)
	}
	delete(r.awaiting, repository)
	r.put(repository, is)
}

// Put adds or changes the refusal of one object, after only its part of a newer commit was read. Without an earlier Set it does nothing,
// because the repository's other refusals are unknown.
func (r *Index) Put(repository string, unit Unit, refusal Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused[repository][unit] == refusal {
		return
	}
	if r.refused[repository] == nil {
		return
	}
	r.refused[repository][unit] = refusal
	r.wake(unit)
}

// Delete removes the refusal of an object that is accepted, or not declared any more.
func (r *Index) Delete(repository string, unit Unit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, refused := r.refused[repository][unit]; refused {
		delete(r.refused[repository], unit)
		r.wake(unit)
	}
}

// Forget drops the refusals of a deleted repository: its objects stay, and no newer version of them is refused.
func (r *Index) Forget(repository string) { r.Set(repository, nil) }

// Of returns why the newest version of an object is refused; the zero Refusal if it is not. known is false until this process has read the
// repository.
func (r *Index) Of(repository string, unit Unit) (refusal Refusal, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, read := r.refused[repository]
	return of[unit], read
}

// wakeOnceRead wakes an object as soon as its repository has been read: its condition may be out of date by then.
func (r *Index) wakeOnceRead(repository string, unit Unit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, read := r.refused[repository]; read {
		r.wake(unit)
		return
	}
	if r.awaiting == nil {
		r.awaiting = map[string]map[Unit]bool{}
	}
	if r.awaiting[repository] == nil {
		r.awaiting[repository] = map[Unit]bool{}
	}
	r.awaiting[repository][unit] = true
}

// Wakes is an event source that wakes the objects of a kind when their refusal changes.
func (r *Index) Wakes(kind string) source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.queues == nil {
			r.queues = map[string]queue{}
		}
		r.queues[kind] = q
		return nil
	})
}

func (r *Index) put(repository string, refused map[Unit]Refusal) {
	if r.refused == nil {
		r.refused = map[string]map[Unit]Refusal{}
	}
	r.refused[repository] = refused
}

// wake adds an object to its controller's queue. A controller that has not started needs no event: it starts with all objects.
func (r *Index) wake(unit Unit) {
	if q := r.queues[unit.Kind]; q != nil {
		q.Add(reconcile.Request{NamespacedName: unit.ObjectKey})
	}
}
