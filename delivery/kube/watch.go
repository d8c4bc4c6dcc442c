package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// syncPatience is how long a look at a kind waits for the kind's first list.
const syncPatience = 30 * time.Second

// Watch knows the metadata of every object that carries a tenant's label, kind by kind; a kind is watched from the first
// time it is asked for.
type Watch struct {
	objects cache.Cache
	own     client.Reader
	direct  client.Client

	mu     sync.Mutex
	kinds  map[schema.GroupVersionKind]*kindWatch
	onKind []func(*metav1.PartialObjectMetadata) error
}

// kindWatch is the watch of one kind; without an informer the operator may not watch it.
type kindWatch struct {
	informer cache.Informer
}

// NewWatch returns a Watch over objects, a cache that is limited to labelled objects, and own, whose cache holds the
// kinds of this API anyway. The direct client asks which kinds the operator may watch.
func NewWatch(objects cache.Cache, own client.Reader, direct client.Client) *Watch {
	return &Watch{objects: objects, own: own, direct: direct, kinds: map[schema.GroupVersionKind]*kindWatch{}}
}

// OnKind calls f once for each kind that is watched, so that a controller can subscribe to its events. It is called
// before the first look.
func (w *Watch) OnKind(f func(*metav1.PartialObjectMetadata) error) { w.onKind = append(w.onKind, f) }

// Live returns the metadata of an object as the watch last saw it, nil when there is none that carries the label. It
// reports false where nothing is known because the operator may not watch the kind, as with Secrets, or the kind is not
// served. A watch that is not in step yet is waited for; an error says that it did not get there.
func (w *Watch) Live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	object, reader, err := w.reader(ctx, kind)
	if object == nil || err != nil {
		return nil, false, err
	}
	err = reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("looking at %s %s: %w", kind.Kind, key, err)
	}
	return object, true, nil
}

// Namespace returns the metadata of a tenant's or project's namespace, or nil when there is none of that name.
func (w *Watch) Namespace(ctx context.Context, name string) (metav1.Object, error) {
	live, known, err := w.Live(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: name})
	if err == nil && !known {
		err = errors.New("the operator may not watch namespaces; the chart's role kubeop-operator lets it")
	}
	return live, err
}

// reader returns where to look for a kind and an empty object to look with; no object where the kind is not seen.
func (w *Watch) reader(ctx context.Context, kind schema.GroupVersionKind) (client.Object, client.Reader, error) {
	if kind.Group == v1alpha1.GroupVersion.Group {
		made, err := w.direct.Scheme().New(kind)
		if err != nil {
			return nil, nil, err
		}
		return made.(client.Object), w.own, nil
	}
	synced, err := w.follow(ctx, kind)
	if err != nil || !synced {
		return nil, nil, err
	}
	return metadataOf(kind), w.objects, nil
}

// Follow starts the watch of a kind, so that subscribers hear of its objects.
func (w *Watch) Follow(ctx context.Context, kind schema.GroupVersionKind) error {
	_, err := w.follow(ctx, kind)
	return err
}

// follow starts the watch of a kind at the first call, waits until it is in step with the API server, and reports false
// where the kind cannot be watched.
func (w *Watch) follow(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	watched, err := w.started(ctx, kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	if watched.informer == nil {
		return false, nil
	}
	patience, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	if !cacheSync(patience, watched.informer) {
		return false, fmt.Errorf("watching %s: the first list has not arrived yet", kind.Kind)
	}
	return true, nil
}

func (w *Watch) started(ctx context.Context, kind schema.GroupVersionKind) (*kindWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched, ok := w.kinds[kind]; ok {
		return watched, nil
	}
	watched := &kindWatch{}
	allowed, err := w.allowed(ctx, kind)
	if err != nil {
		return nil, err
	}
	if allowed {
		if watched.informer, err = w.subscribe(ctx, kind); err != nil {
			return nil, err
		}
	}
	w.kinds[kind] = watched
	return watched, nil
}

func (w *Watch) subscribe(ctx context.Context, kind schema.GroupVersionKind) (cache.Informer, error) {
	informer, err := w.objects.GetInformer(ctx, metadataOf(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	for _, subscribe := range w.onKind {
		if err := subscribe(metadataOf(kind)); err != nil {
			return nil, err
		}
	}
	return informer, nil
}

// allowed asks the API server, once a kind, whether the operator may watch it in all namespaces. An informer that may not
// would try for ever.
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

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// cacheSync reports whether the informer has its first list before the context ends.
func cacheSync(ctx context.Context, informer cache.Informer) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !informer.HasSynced() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
