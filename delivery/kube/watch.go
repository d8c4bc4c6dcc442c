package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// syncPatience is how long the first look at a kind waits for its watch. A kind the operator may not list never syncs;
// it is then treated as unseen for good, which costs requests but nothing else.
const syncPatience = 3 * time.Second

// Watch knows the metadata of every object that carries a tenant's label, kind by kind; a kind is watched from the first
// time it is asked for.
type Watch struct {
	objects cache.Cache
	own     client.Client

	mu     sync.Mutex
	kinds  map[schema.GroupVersionKind]*kindWatch
	onKind []func(*metav1.PartialObjectMetadata) error
}

type kindWatch struct {
	informer cache.Informer
	waited   sync.Once
}

// NewWatch returns a Watch over objects, a cache that is limited to labelled objects, and own, whose cache holds the
// kinds of this API anyway.
func NewWatch(objects cache.Cache, own client.Client) *Watch {
	return &Watch{objects: objects, own: own, kinds: map[schema.GroupVersionKind]*kindWatch{}}
}

// OnKind calls f once for each kind that is watched, so that a controller can subscribe to its events. It is called
// before the first look.
func (w *Watch) OnKind(f func(*metav1.PartialObjectMetadata) error) { w.onKind = append(w.onKind, f) }

// Live returns the metadata of an object as the watch last saw it, nil when there is none that carries the label. It
// reports false when the kind cannot be watched, so that nothing is known.
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

// reader returns where to look for a kind and an empty object to look with; no object where the kind is not seen.
func (w *Watch) reader(ctx context.Context, kind schema.GroupVersionKind) (client.Object, client.Reader, error) {
	if kind.Group == v1alpha1.GroupVersion.Group {
		made, err := w.own.Scheme().New(kind)
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

// follow starts the watch of a kind at the first call and reports whether it is in step with the API server.
func (w *Watch) follow(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	watched, err := w.started(ctx, kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	watched.waited.Do(func() {
		patience, cancel := context.WithTimeout(ctx, syncPatience)
		defer cancel()
		cacheSync(patience, watched.informer)
	})
	return watched.informer.HasSynced(), nil
}

func (w *Watch) started(ctx context.Context, kind schema.GroupVersionKind) (*kindWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched, ok := w.kinds[kind]; ok {
		return watched, nil
	}
	informer, err := w.objects.GetInformer(ctx, metadataOf(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	for _, subscribe := range w.onKind {
		if err := subscribe(metadataOf(kind)); err != nil {
			return nil, err
		}
	}
	watched := &kindWatch{informer: informer}
	w.kinds[kind] = watched
	return watched, nil
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// cacheSync returns when the informer has its first list or the context ends.
func cacheSync(ctx context.Context, informer cache.Informer) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !informer.HasSynced() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
