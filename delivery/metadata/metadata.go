// Package metadata reads the metadata of objects, from a watch or from the API server.
package metadata

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch returns the metadata of an object as a watch last showed it; nil if there is no such object, and false if the kind is not watched.
type Watch func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error)

// Get returns the metadata of an object from the watch or, for a kind that is not watched, from the API server; nil if there is no such
// object.
func (w Watch) Get(ctx context.Context, c client.Client, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, error) {
	found, watched, err := w(ctx, kind, key)
	if watched || err != nil {
		return found, err
	}
	return Read(ctx, c, kind, key)
}

// Read returns the metadata of an object from the API server; nil if there is no such object. A kind that is no longer served has no
// objects.
func Read(ctx context.Context, c client.Client, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	err := c.Get(ctx, key, object)
	if Missing(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// ErrChanging means that someone else wrote an object each time it was to be written.
var ErrChanging = errors.New("it changes all the time")

// Changing is an ErrChanging about an object. done says what could not be done with it, such as "compared" or "deleted".
func Changing(done string) error { return fmt.Errorf("%w, so it could not be %s", ErrChanging, done) }

// Behind reports whether a watch that shows this object (nil for none) has not received the resourceVersion floor yet.
func Behind(live metav1.Object, floor string) bool {
	if floor == "" || live == nil {
		return floor != ""
	}
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), floor)
	return err == nil && order < 0
}

// ServedAs returns the kind in a version that is served. An object outlives the version in which it was recorded.
func ServedAs(c client.Client, kind schema.GroupVersionKind) schema.GroupVersionKind {
	if _, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); !meta.IsNoMatchError(err) {
		return kind
	}
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind())
	if err != nil {
		return kind // The next request reports the reason.
	}
	return mapping.GroupVersionKind
}

// Unserved reports whether a request failed because the API server serves nothing at its path, so that the object may still exist. Such an
// answer names no object, or does not come from the API at all, which client-go marks.
func Unserved(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &answer) {
		return false
	}
	about := answer.Status().Details
	return about == nil || about.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Missing reports whether the API server answered that the object does not exist.
func Missing(err error) bool { return apierrors.IsNotFound(err) && !Unserved(err) }
