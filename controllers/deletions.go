package controllers

import (
	"context"
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/singleflight"
)

var (
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

// deletions finds out whether an object's deletion was meant for the object, or follows from the deletion of its CustomResourceDefinition or of
// kubeop.
type deletions struct {
	// client must not read from a cache, because the present state decides.
	client client.Client
	// namespace and deployment name the operator's own Deployment; deployment is "" if the operator does not run as one.
	namespace, deployment string

	reads singleflight.Group[*needs]
}

func newDeletions(c client.Client, namespace, deployment string) *deletions {
	return &deletions{client: c, namespace: namespace, deployment: deployment, reads: singleflight.Group[*needs]{Clock: &atomic.Int64{}}}
}

// cause reports whether a deletion was meant for the object.
//
// When a CustomResourceDefinition is deleted, the API server first sets its deletionTimestamp, and then deletes all its objects. So if an
// object has a deletionTimestamp and its definition, read after that was seen, has none, the object itself was deleted. If a person removes
// the definition's finalizer, an object may also outlive its definition, and is still marked as deleted when the definition is created
// again. In the same way, objects that were deleted while kubeop was not installed, possibly without its admission policies, wait for the
// next installation.
func (d *deletions) cause(ctx context.Context, obj step.Object) (step.Cause, error) {
	kind, err := d.client.GroupVersionKindFor(obj)
	if err != nil {
		return step.Cause{}, fmt.Errorf("finding the kind of %s: %w", obj.GetName(), err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	name := resource.GroupResource().String()
	now, err := d.needed(ctx, name)
	switch {
	case err != nil:
		return step.Cause{}, err
	case leaving(now.definition):
		return step.Cause{Other: "CustomResourceDefinition " + name + " is being deleted"}, nil
	case !after(obj, now.definition):
		return step.Cause{Other: "it was deleted before CustomResourceDefinition " + name + " was made"}, nil
	case d.deployment == "":
		return step.Cause{}, nil
	}
	own := client.ObjectKey{Namespace: d.namespace, Name: d.deployment}
	switch {
	case leaving(now.deployment):
		return step.Cause{Other: fmt.Sprintf("kubeop is being uninstalled: its Deployment %s is being deleted or gone", own), Hold: true}, nil
	case !after(obj, now.deployment):
		return step.Cause{Other: fmt.Sprintf("it was deleted before Deployment %s was made, when kubeop was not installed", own)}, nil
	}
	return step.Cause{}, nil
}

// needs are the objects without which objects of a definition cannot exist, as one read found them; nil if there is none.
type needs struct{ definition, deployment *metav1.PartialObjectMetadata }

// needed reads the needs of a definition's objects. Callers that came before the read began share it (singleflight), so that the deletion
// of thousands of objects does not cost two requests for each. A later caller must not use it: its object may have been deleted after the
// read began.
func (d *deletions) needed(ctx context.Context, definition string) (*needs, error) {
	return d.reads.Do(ctx, definition, d.reads.Clock.Add(1), func() (*needs, error) {
		now := &needs{}
		var err error
		if now.definition, err = d.read(ctx, definitionKind, client.ObjectKey{Name: definition}); err != nil || d.deployment == "" {
			return now, err
		}
		now.deployment, err = d.read(ctx, deploymentKind, client.ObjectKey{Namespace: d.namespace, Name: d.deployment})
		return now, err
	})
}

// read returns an object's metadata; nil if the object does not exist.
func (d *deletions) read(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	err := d.client.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key.Name, err)
	}
	return o, nil
}

// leaving reports whether the object is gone or being deleted.
func leaving(o *metav1.PartialObjectMetadata) bool { return o == nil || o.DeletionTimestamp != nil }

// after reports whether obj was deleted after the other object was created. Timestamps have seconds; the same second does not count.
func after(obj step.Object, made *metav1.PartialObjectMetadata) bool {
	return obj.GetDeletionTimestamp().After(made.CreationTimestamp.Time)
}
