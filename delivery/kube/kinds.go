package kube

import (
	"context"
	"fmt"
	"maps"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// refusedLists is how many lists must fail before callers get the error. It is one attempt, because each attempt lists in two ways.
const refusedLists = 2

// passesWithin is how long lists may fail for a temporary reason before callers get the error.
const passesWithin = 5 * time.Second

// reviewEvery is how often the operator asks whether it may watch by now what it may not, while the kind is in use.
const reviewEvery = time.Minute

// kindWatch is the watch of one kind.
type kindWatch struct {
	*firstList
	// store is set when the first list is over; it stays nil if the operator may not watch the kind.
	store toolscache.Store
	// refused counts the lists that failed; the Watch's lock guards it.
	refused int
	// reviewed is when the operator last began to ask whether it may watch the kind; the Watch's lock guards it.
	reviewed time.Time
	// gone is closed when the watch is given up.
	gone chan struct{}
}

// Begin starts the watches of kinds before their first use.
func (w *Watch) Begin(kinds ...schema.GroupVersionKind) {
	for _, kind := range kinds {
		_, _ = w.started(kind) // The first use of the kind returns the error.
	}
}

// Follow starts the watch of a kind, so that subscribers get its events. It returns nil once the watch is in sync.
func (w *Watch) Follow(kind schema.GroupVersionKind) error {
	_, err := w.follow(kind)
	return err
}

// follow starts the watch of a kind at the first call and returns its store. It returns nil if the kind cannot be watched, and an *Unready
// while the watch is not in sync with the API server.
func (w *Watch) follow(kind schema.GroupVersionKind) (toolscache.Store, error) {
	watched, err := w.started(kind)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	case !watched.isOver():
		return nil, watched.unready()
	case watched.store == nil && w.reviewDue(watched):
		go w.review(kind, watched)
	}
	return watched.store, nil
}

func (w *Watch) reviewDue(watched *kindWatch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if now.Sub(watched.reviewed) < reviewEvery {
		return false
	}
	watched.reviewed = now
	return true
}

// review gives up the watch of a kind that the operator could not watch, if it may by now: the next use begins it anew. Until then, and if
// the API server does not answer, callers go on without a watch.
func (w *Watch) review(kind schema.GroupVersionKind, watched *kindWatch) {
	ctx, cancel := context.WithTimeout(context.Background(), reviewEvery)
	defer cancel()
	if allowed, err := w.allowed(ctx, kind); err == nil && allowed {
		w.giveUp(kind, watched)
	}
}

func (w *Watch) started(kind schema.GroupVersionKind) (*kindWatch, error) {
	w.mu.Lock()
	watched := w.kinds[kind]
	w.mu.Unlock()
	if watched != nil {
		return watched, nil
	}
	if _, err := w.direct.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched = w.kinds[kind]; watched == nil { // Otherwise another call was faster.
		watched = &kindWatch{firstList: newFirstList(kind.Kind, w.clock.Now()), reviewed: w.clock.Now(), gone: make(chan struct{})}
		w.kinds[kind] = watched
		go w.begin(kind, watched)
	}
	return watched, nil
}

// begin finds out whether the kind may be watched, and starts the watch. It returns when the first list is complete.
func (w *Watch) begin(kind schema.GroupVersionKind, watched *kindWatch) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-watched.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	for pause := retries; ; {
		err := w.subscribe(ctx, kind, watched)
		if err == nil {
			watched.end()
			return
		}
		if !passes(err) {
			watched.fail(err)
		}
		select {
		case <-watched.gone:
			return
		case <-w.clock.After(pause.Step()):
		}
	}
}

// subscribe adds all subscribers to the informer of a kind, and waits for its first list.
func (w *Watch) subscribe(ctx context.Context, kind schema.GroupVersionKind, watched *kindWatch) error {
	if allowed, err := w.allowed(ctx, kind); !allowed || err != nil {
		return err
	}
	informer, err := w.objects.GetInformer(ctx, w.form(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	stored, ok := informer.(interface{ GetStore() toolscache.Store })
	if !ok {
		return fmt.Errorf("%T holds nothing", informer)
	}
	for _, subscribe := range w.onKind {
		if err := subscribe(kind, informer); err != nil {
			return err
		}
	}
	select {
	case <-informer.HasSyncedChecker().Done():
		watched.store = stored.GetStore()
		return nil
	case <-watched.gone:
		return nil
	}
}

// awaitsList reports whether the first list of a kind has not arrived yet.
func (w *Watch) awaitsList(kind schema.GroupVersionKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	watched := w.kinds[kind]
	return watched != nil && !watched.isOver()
}

// listAnswered records the failure of a first list. A success counts only when the informer has the list, so it is not recorded here.
func (w *Watch) listAnswered(kind schema.GroupVersionKind, err error) {
	if err == nil || !w.awaitsList(kind) {
		return
	}
	w.mu.Lock()
	watched, failed := w.kinds[kind], false
	switch {
	case watched == nil:
	case passes(err):
		failed = w.clock.Since(watched.since) > passesWithin
	default:
		watched.refused++
		failed = watched.refused >= refusedLists
	}
	w.mu.Unlock()
	if failed {
		watched.fail(err)
	}
}

// Refresh stops the watches of kinds that are no longer served, which would retry for ever, and checks again the kinds that the operator
// could not watch. Call it after the API server's discovery has changed.
func (w *Watch) Refresh(ctx context.Context) error {
	w.mu.Lock()
	kinds := maps.Clone(w.kinds)
	w.mu.Unlock()
	for kind, watched := range kinds {
		_, err := w.direct.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		unwatched := watched.isOver() && watched.store == nil
		if err == nil && !unwatched {
			continue
		}
		if meta.IsNoMatchError(err) {
			err = w.objects.RemoveInformer(ctx, w.form(kind))
		}
		if err != nil {
			return fmt.Errorf("giving up the watch of %s: %w", kind.Kind, err)
		}
		w.giveUp(kind, watched)
	}
	return nil
}

// giveUp forgets the watch of a kind and wakes the callers that wait for it; the next use starts it anew.
func (w *Watch) giveUp(kind schema.GroupVersionKind, watched *kindWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kinds[kind] == watched {
		delete(w.kinds, kind)
		close(watched.gone)
		watched.end()
	}
}

// allowed checks with the API server whether the operator may watch the kind in all namespaces. Without permission, an informer would retry for ever.
func (w *Watch) allowed(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	mapping, err := w.direct.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err
	}
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: kind.Group, Resource: mapping.Resource.Resource},
		}}
		if err := w.direct.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking whether it may be watched: %w", err)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// whole reports whether the watch of a kind holds more than metadata.
func (w *Watch) whole(kind schema.GroupVersionKind) bool {
	return w.hasStatus(kind) && kind != corev1.SchemeGroupVersion.WithKind("Pod")
}

// form returns the object with which a cache is queried for a kind. It is always the same form, because another form would be another
// informer. Kubernetes' own kinds come as Protobuf, which the API server has already encoded for Kubernetes' controllers; fields that are
// newer than the Kubernetes that this is built with are missing.
func (w *Watch) form(kind schema.GroupVersionKind) client.Object {
	var object client.Object = &metav1.PartialObjectMetadata{}
	if w.whole(kind) {
		object = &unstructured.Unstructured{}
		made, _ := w.direct.Scheme().New(kind)
		if typed, known := made.(client.Object); known && workloads[kind.Group] {
			object = typed
		}
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object
}
