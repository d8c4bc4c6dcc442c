// Package classes finds the default classes of the cluster, which the API server gives what names none.
package classes

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations that make a StorageClass the default one. Kubernetes reads both.
const (
	usualStorage     = "storageclass.kubernetes.io/is-default-class"
	usualStorageBeta = "storageclass.beta.kubernetes.io/is-default-class"
)

// Usual are the cluster's default classes; "" where there is none, or where it is not known.
type Usual struct {
	Storage, Ingress, Priority string
	// NoIngress is true if the cluster certainly has no default IngressClass. Then an Ingress that names no class has none, and every controller that
	// serves Ingresses without a class serves it.
	NoIngress bool
}

// Find returns the cluster's default classes, as the API server finds them (the admission plugins DefaultStorageClass, DefaultIngressClass and
// Priority). Those of a kind that the reader may not list are not known.
func Find(ctx context.Context, c client.Reader) (usual Usual, err error) {
	storage, ingress, priority := &storagev1.StorageClassList{}, &networkingv1.IngressClassList{}, &schedulingv1.PriorityClassList{}
	for _, list := range []client.ObjectList{storage, ingress, priority} {
		err := c.List(ctx, list, client.UnsafeDisableDeepCopy)
		if err != nil && !apierrors.IsForbidden(err) {
			return usual, fmt.Errorf("reading the default classes of the cluster: %w", err)
		}
		usual.NoIngress = usual.NoIngress || list == client.ObjectList(ingress) && err == nil
	}
	var newest newestClass
	for i := range storage.Items {
		newest.see(&storage.Items[i].ObjectMeta, usualStorage, usualStorageBeta)
	}
	usual.Storage, newest = newest.name(), newestClass{}
	for i := range ingress.Items {
		newest.see(&ingress.Items[i].ObjectMeta, networkingv1.AnnotationIsDefaultIngressClass)
	}
	usual.Ingress = newest.name()
	usual.NoIngress = usual.NoIngress && usual.Ingress == ""
	var lowest *schedulingv1.PriorityClass
	for i := range priority.Items {
		if class := &priority.Items[i]; class.GlobalDefault && (lowest == nil || class.Value < lowest.Value) {
			lowest = class
		}
	}
	if lowest != nil {
		usual.Priority = lowest.Name
	}
	return usual, nil
}

// newestClass is the default class that was created last; of several at that time, the first by name.
type newestClass struct{ of *metav1.ObjectMeta }

// see takes a class if one of the annotations makes it the default one, and it comes before what was seen.
func (n *newestClass) see(class *metav1.ObjectMeta, annotations ...string) {
	for _, annotation := range annotations {
		if class.Annotations[annotation] != "true" {
			continue
		}
		if n.of == nil || n.of.CreationTimestamp.Before(&class.CreationTimestamp) || n.of.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < n.of.Name {
			n.of = class
		}
	}
}

func (n *newestClass) name() string {
	if n.of == nil {
		return ""
	}
	return n.of.Name
}
