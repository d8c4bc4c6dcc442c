// Package refusal knows which Apps and Projects the newest commit of their repository declares in a way that is refused, so
// that the object itself says that it stays at an older version: condition Current.
//
// It is held in memory only, and only what is refused is. After a restart the first reading of each repository fills it; until
// then an object keeps the condition it has.
package refusal

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Unit is an object that a commit declares: its kind, such as v1alpha1.AppKind, and where it is.
type Unit struct {
	Kind string
	client.ObjectKey
}

// Refusal is why a newer version of an object is not taken.
type Refusal struct {
	// Revision is the commit that holds the refused version, as "branch@sha1:<commit>". While the problem stays the same, it is
	// the first such commit that is known.
	Revision string
	// Place is where it is wrong first, as "file:line" or "file", and Problem what is wrong there.
	Place, Problem string

	// found: the problem was there when the repository was first read in this process, and may be older than Revision.
	found bool
}

// same reports whether a refusal is for this problem.
func (r Refusal) same(place, problem string) bool { return r.Place == place && r.Problem == problem }

// Index holds the refusals of all repositories and wakes the objects they are about. The zero value is ready. Safe for
// concurrent use.
type Index struct {
	mu sync.Mutex
	// refused has an entry for each repository that was read since the process started.
	refused map[string]map[Unit]Refusal
	// queues are those of the controllers, by kind.
	queues map[string]queue
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Set says what is refused of a repository's newest commit, after all of it was read: nothing but this.
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
	r.put(repository, is)
}

// Put says that one object is refused, after its part of a newer commit was read. It needs a Set before it: what is refused of
// the rest of a repository is known then.
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

// Delete says that one object is refused no more, or not declared any more.
func (r *Index) Delete(repository string, unit Unit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, refused := r.refused[repository][unit]; refused {
		delete(r.refused[repository], unit)
		r.wake(unit)
	}
}

// Forget drops what is refused of a repository that is gone: what it declared stays, and nothing newer is refused.
func (r *Index) Forget(repository string) { r.Set(repository, nil) }

// Of returns why the newest version of an object is refused. It is not known before the repository was read; the zero Refusal
// that is known says that the object is current.
func (r *Index) Of(repository string, unit Unit) (refusal Refusal, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, read := r.refused[repository]
	return of[unit], read
}

// Wakes is what has a controller look at the objects of its kind when their refusal changes.
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

// wake has an object looked at. Before its controller started there is no need: it begins with all objects.
func (r *Index) wake(unit Unit) {
	if q := r.queues[unit.Kind]; q != nil {
		q.Add(reconcile.Request{NamespacedName: unit.ObjectKey})
	}
}
