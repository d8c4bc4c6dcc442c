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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// syncPatience is how long a look at a kind waits for the kind's first list.
const syncPatience = 30 * time.Second

// Watch knows every object that carries a tenant's label, kind by kind; a kind is watched from the first time it is asked
// for. Of kinds whose health has a status it holds what health is judged by, of others the metadata.
type Watch struct {
	objects   cache.Cache
	own       client.Reader
	direct    client.Client
	hasStatus func(schema.GroupVersionKind) bool

	mu     sync.Mutex
	kinds  map[schema.GroupVersionKind]*kindWatch
	onKind []func(schema.GroupVersionKind, cache.Informer) error
}

// kindWatch is the watch of one kind; without a store the operator may not watch it.
type kindWatch struct {
	informer cache.Informer
	store    toolscache.Store
}

// NewWatch returns a Watch over objects, a cache that is limited to labelled objects and whose transform is Hold, and own,
// whose cache holds the kinds of this API anyway. The direct client asks which kinds the operator may watch; hasStatus
// says of which kinds to hold more than metadata. Pods are never among them: nobody applies them, and there are many.
func NewWatch(objects cache.Cache, own client.Reader, direct client.Client, hasStatus func(schema.GroupVersionKind) bool) *Watch {
	return &Watch{objects: objects, own: own, direct: direct, hasStatus: hasStatus, kinds: map[schema.GroupVersionKind]*kindWatch{}}
}

// OnKind calls f once for each kind that is watched, before the first look at it, so that a controller can subscribe to its
// informer: whoever subscribes later is told of what is there as if it were new, and of no change before. The events' objects have
// metadata and nothing else to rely on.
func (w *Watch) OnKind(f func(kind schema.GroupVersionKind, informer cache.Informer) error) {
	w.onKind = append(w.onKind, f)
}

// Live returns the metadata of an object as the watch last saw it, nil when there is none that carries the label. It
// reports false where nothing is known because the operator may not watch the kind, as with Secrets, or the kind is not
// served. A watch that is not in step yet is waited for; an error says that it did not get there. What it returns is
// shared: it is not to be changed.
func (w *Watch) Live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	if kind.Group == v1alpha1.GroupVersion.Group {
		return w.liveOwn(ctx, kind, key)
	}
	held, known, err := w.look(ctx, kind, key)
	if held == nil || err != nil {
		return nil, known, err
	}
	object, err := meta.Accessor(held)
	return object, err == nil, err
}

// Object returns an object as far as its health is judged by it, as the watch last saw it: metadata, spec and status
// without what Hold leaves out. It is nil when there is none that carries the label, and nothing is known, besides where
// Live knows nothing, of kinds without a status, Pods and the kinds of this API.
func (w *Watch) Object(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, bool, error) {
	if kind.Group == v1alpha1.GroupVersion.Group || !w.whole(kind) {
		return nil, false, nil
	}
	found, known, err := w.look(ctx, kind, key)
	if found == nil || err != nil {
		return nil, known, err
	}
	object, err := found.(*held).object()
	if err != nil {
		return nil, false, fmt.Errorf("looking at %s %s: %w", kind.Kind, key, err)
	}
	return object, true, nil
}

// InNamespace returns the metadata of all objects of a kind in a namespace that carry the label, as the watch last saw them; none
// where the operator may not watch the kind. What it returns is shared: it is not to be changed.
func (w *Watch) InNamespace(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]metav1.Object, error) {
	store, err := w.follow(ctx, kind)
	indexer, ok := store.(toolscache.Indexer)
	if !ok || err != nil {
		return nil, err
	}
	found, err := indexer.ByIndex(toolscache.NamespaceIndex, namespace)
	if err != nil {
		return nil, fmt.Errorf("looking for %s in %s: %w", kind.Kind, namespace, err)
	}
	var objects []metav1.Object
	for _, held := range found {
		object, err := meta.Accessor(held)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (w *Watch) liveOwn(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	made, err := w.direct.Scheme().New(kind)
	if err != nil {
		return nil, false, err
	}
	object := made.(client.Object)
	err = w.own.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("looking at %s %s: %w", kind.Kind, key, err)
	}
	return object, true, nil
}

// look returns what the watch holds of an object.
func (w *Watch) look(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (any, bool, error) {
	store, err := w.follow(ctx, kind)
	if store == nil || err != nil {
		return nil, false, err
	}
	found, _, err := store.GetByKey(toolscache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil {
		return nil, false, fmt.Errorf("looking at %s %s: %w", kind.Kind, key, err)
	}
	return found, true, nil
}

// Namespace returns the metadata of a tenant's or project's namespace, or nil when there is none of that name.
func (w *Watch) Namespace(ctx context.Context, name string) (metav1.Object, error) {
	live, known, err := w.Live(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: name})
	if err == nil && !known {
		err = errors.New("the operator may not watch namespaces; the chart's role kubeop-operator lets it")
	}
	return live, err
}

// Follow starts the watch of a kind, so that subscribers hear of its objects.
func (w *Watch) Follow(ctx context.Context, kind schema.GroupVersionKind) error {
	_, err := w.follow(ctx, kind)
	return err
}

// follow starts the watch of a kind at the first call, waits until it is in step with the API server, and returns what it
// holds; nil where the kind cannot be watched.
func (w *Watch) follow(ctx context.Context, kind schema.GroupVersionKind) (toolscache.Store, error) {
	watched, err := w.started(ctx, kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	if watched.store == nil {
		return nil, nil
	}
	patience, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	if !cacheSync(patience, watched.informer) {
		return nil, fmt.Errorf("watching %s: the first list has not arrived yet", kind.Kind)
	}
	return watched.store, nil
}

func (w *Watch) started(ctx context.Context, kind schema.GroupVersionKind) (*kindWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched, ok := w.kinds[kind]; ok {
		return watched, nil
	}
	allowed, err := w.allowed(ctx, kind)
	if err != nil {
		return nil, err
	}
	watched := &kindWatch{}
	if allowed {
		if watched, err = w.subscribe(ctx, kind); err != nil {
			return nil, err
		}
	}
	w.kinds[kind] = watched
	return watched, nil
}

func (w *Watch) subscribe(ctx context.Context, kind schema.GroupVersionKind) (*kindWatch, error) {
	informer, err := w.objects.GetInformer(ctx, w.form(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	stored, ok := informer.(interface{ GetStore() toolscache.Store })
	if !ok {
		return nil, fmt.Errorf("%T holds nothing", informer)
	}
	for _, subscribe := range w.onKind {
		if err := subscribe(kind, informer); err != nil {
			return nil, err
		}
	}
	return &kindWatch{informer: informer, store: stored.GetStore()}, nil
}

// Refresh gives up the watches of kinds that are no longer served, which would be tried for ever, and asks anew about
// kinds that the operator could not watch. It is for after a change of what the API server serves.
func (w *Watch) Refresh(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, watched := range w.kinds {
		_, err := w.direct.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil && watched.store != nil {
			continue
		}
		if meta.IsNoMatchError(err) {
			err = w.objects.RemoveInformer(ctx, w.form(kind))
		}
		if err != nil {
			return fmt.Errorf("giving up the watch of %s: %w", kind.Kind, err)
		}
		delete(w.kinds, kind)
	}
	return nil
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

// whole reports whether more than metadata is held of a kind.
func (w *Watch) whole(kind schema.GroupVersionKind) bool {
	return w.hasStatus(kind) && kind != corev1.SchemeGroupVersion.WithKind("Pod")
}

// form returns what a cache is asked with for a kind, always the same: another form would be another informer. Kubernetes' own
// kinds come as Protobuf, which the API server has encoded for Kubernetes' controllers already; without what is newer than the
// Kubernetes that this is built with.
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
