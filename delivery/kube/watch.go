package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Watch holds every object with a tenant's label, by kind; the watch of a kind starts with the first read. If the status of a kind matters
// for its health, Watch holds the fields that health depends on, otherwise only the metadata.
//
// No read waits: until the first list of its kind is complete, it returns *Unready, which can wake the caller.
type Watch struct {
	objects   cache.Cache
	own       client.Reader
	direct    client.Client
	hasStatus func(schema.GroupVersionKind) bool
	clock     clock.Clock

	mu     sync.Mutex
	kinds  map[schema.GroupVersionKind]*kindWatch
	onKind []func(schema.GroupVersionKind, cache.Informer) error
}

// NewWatch returns a Watch over two caches: objects, which is limited to labelled objects and has the transform Hold and the options of the
// lists, and own, which has the kinds of this API. The direct client finds out which kinds the operator may watch. hasStatus reports for
// which kinds to hold more than metadata. Pods are never held: apps do not own them, and there are many.
func NewWatch(lists *Lists, objects cache.Cache, own client.Reader, direct client.Client, hasStatus func(schema.GroupVersionKind) bool) *Watch {
	w := &Watch{objects: objects, own: own, direct: direct, hasStatus: hasStatus, clock: lists.clock, kinds: map[schema.GroupVersionKind]*kindWatch{}}
	lists.awaitsList, lists.listAnswered = w.awaitsList, w.listAnswered
	return w
}

// OnKind calls f once for each kind that is watched, before the kind's first object is read. So a controller can subscribe to the kind's
// informer before the first event. A later subscriber gets existing objects as newly created ones, and misses earlier changes. Rely only on
// the metadata of the objects in events, and on DecodeHeld.
func (w *Watch) OnKind(f func(kind schema.GroupVersionKind, informer cache.Informer) error) {
	w.onKind = append(w.onKind, f)
}

// Live returns the metadata of an object as the watch last saw it, nil if no object with the label exists. It reports false, meaning
// unknown, if the operator may not watch the kind, as with Secrets, or the kind is not served. The result is shared: do not change it.
func (w *Watch) Live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	if kind.Group == v1alpha1.GroupVersion.Group {
		return w.liveOwn(ctx, kind, key)
	}
	held, known, err := w.look(kind, key)
	if held == nil || err != nil {
		return nil, known, err
	}
	object, err := meta.Accessor(held)
	return object, err == nil, err
}

// Object returns the parts of an object that health checks read, as the watch last saw them: metadata, spec and status, without what Hold
// removes. It returns nil if no object with the label exists. It reports false, meaning unknown, where Live does, and for kinds without a
// status, Pods and the kinds of this API.
func (w *Watch) Object(_ context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, bool, error) {
	if kind.Group == v1alpha1.GroupVersion.Group || !w.whole(kind) {
		return nil, false, nil
	}
	found, known, err := w.look(kind, key)
	if found == nil || err != nil {
		return nil, known, err
	}
	object, err := found.(*held).object()
	if err != nil {
		return nil, false, fmt.Errorf("looking at %s %s: %w", kind.Kind, key, err)
	}
	return object, true, nil
}

// Decode decodes the spec and the status of an object returned by Object into a value of its Go type, and reports whether the object
// exists.
func (w *Watch) Decode(kind schema.GroupVersionKind, key types.NamespacedName, into any) (bool, error) {
	if !w.whole(kind) {
		return false, nil
	}
	found, _, err := w.look(kind, key)
	if found == nil || err != nil {
		return false, err
	}
	if err := found.(*held).decode(into); err != nil {
		return false, fmt.Errorf("looking at %s %s: %w", kind.Kind, key, err)
	}
	return true, nil
}

// InNamespace returns the metadata of all objects of a kind in a namespace that carry the label, as the watch last saw them; none if the
// operator may not watch the kind. The result is shared: do not change it.
func (w *Watch) InNamespace(kind schema.GroupVersionKind, namespace string) ([]metav1.Object, error) {
	store, err := w.follow(kind)
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

// look returns the watch's copy of an object.
func (w *Watch) look(kind schema.GroupVersionKind, key types.NamespacedName) (any, bool, error) {
	store, err := w.follow(kind)
	if store == nil || err != nil {
		return nil, false, err
	}
	found, _, err := store.GetByKey(toolscache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil {
		return nil, false, fmt.Errorf("looking at %s %s: %w", kind.Kind, key, err)
	}
	return found, true, nil
}

// Namespace returns the metadata of a tenant's or project's namespace, or nil if there is none of that name.
func (w *Watch) Namespace(ctx context.Context, name string) (metav1.Object, error) {
	live, known, err := w.Live(ctx, namespaceKind, types.NamespacedName{Name: name})
	if err == nil && !known {
		err = errors.New("the operator may not watch namespaces; the chart's role kubeop-operator lets it")
	}
	return live, err
}

// TenantOf returns the tenant that a namespace belongs to by its label; "" if it belongs to none, or if that is not known yet.
func (w *Watch) TenantOf(namespace string) string {
	w.mu.Lock()
	namespaces := w.kinds[namespaceKind]
	w.mu.Unlock()
	if namespaces == nil || !namespaces.isOver() || namespaces.store == nil {
		return ""
	}
	found, _, err := namespaces.store.GetByKey(namespace)
	if err != nil || found == nil {
		return ""
	}
	object, err := meta.Accessor(found)
	if err != nil {
		return ""
	}
	return object.GetLabels()[v1alpha1.TenantLabel]
}
