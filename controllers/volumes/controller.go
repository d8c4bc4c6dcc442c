// Package volumes keeps the volumes of a namespace that a person is about to delete: it sets their reclaim policy to Retain before
// admission allows the deletion of the namespace.
package volumes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/pvc"
)

// again is the interval in which new claims are looked for while the namespace may be deleted.
const again = 30 * time.Second

// maxNamed is how many volumes the annotation names.
const maxNamed = 20

// Reconciler reconciles namespaces of tenants that a person is about to delete.
type Reconciler struct {
	// Direct reads and writes without the cache.
	Direct client.Client
	Watch  *kube.Watch
	Events events.EventRecorder
}

// SetupWithManager adds the controller. A namespace is reconciled when its deletion is allowed or forbidden again.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	options.Reconciler = r
	c, err := controller.New("volumes", mgr, options)
	if err != nil {
		return err
	}
	r.Watch.OnKind(func(kind schema.GroupVersionKind, informer cache.Informer) error {
		if kind != corev1.SchemeGroupVersion.WithKind("Namespace") {
			return nil
		}
		return c.Watch(&source.Informer{Informer: informer, Handler: &handler.EnqueueRequestForObject{}, Predicates: []predicate.Predicate{annotated}})
	})
	return nil
}

// annotated passes changes of the two annotations of a namespace.
var annotated = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return marksOf(e.Object) != [2]string{} },
	UpdateFunc: func(e event.UpdateEvent) bool { return marksOf(e.ObjectOld) != marksOf(e.ObjectNew) },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

func marksOf(o client.Object) [2]string {
	return [2]string{o.GetAnnotations()[v1alpha1.AllowDeletionAnnotation], o.GetAnnotations()[v1alpha1.VolumesRetainedAnnotation]}
}

// Reconcile retains the volumes of a namespace while the namespace's deletion is allowed, and names the volumes in an annotation. If the
// deletion is not allowed any more, it removes the annotation. The volumes keep the policy Retain, because their earlier policy is unknown.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ns := &corev1.Namespace{}
	err := r.Direct.Get(ctx, request.NamespacedName, ns)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading namespace %s: %w", request.Name, err)
	}
	annotated, there := ns.Annotations[v1alpha1.VolumesRetainedAnnotation]
	switch {
	case ns.Labels[v1alpha1.TenantLabel] == "":
		return reconcile.Result{}, nil
	case ns.Annotations[v1alpha1.AllowDeletionAnnotation] != ns.Name:
		if !there {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, r.annotate(ctx, ns, nil)
	}
	retained, err := r.retain(ctx, ns.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if now := summary(retained); now != annotated {
		if err := r.annotate(ctx, ns, now); err != nil {
			return reconcile.Result{}, err
		}
		r.Events.Eventf(ns, nil, corev1.EventTypeNormal, v1alpha1.VolumesRetainedReason, "Retain", "%s", message(retained))
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// retain sets the reclaim policy of the volumes of a namespace's claims to Retain, and returns the volumes' names.
func (r *Reconciler) retain(ctx context.Context, namespace string) ([]string, error) {
	claims, err := pvc.List(ctx, r.Direct, namespace)
	if err != nil {
		return nil, err
	}
	var retained []string
	for i := range claims {
		claim, volume := &claims[i], &corev1.PersistentVolume{}
		if claim.Spec.VolumeName == "" {
			continue
		}
		err := r.Direct.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the volume of claim %s: %w", claim.Name, err)
		}
		// A claim can name any volume. Only the volume's claimRef says which claim it belongs to.
		if ref := volume.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
			continue
		}
		if err := r.keep(ctx, volume); err != nil {
			return nil, err
		}
		retained = append(retained, volume.Name)
	}
	return retained, nil
}

func (r *Reconciler) keep(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return nil
	}
	before := volume.DeepCopy()
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	if err := r.Direct.Patch(ctx, volume, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("retaining volume %s: %w", volume.Name, err)
	}
	return nil
}

// annotate sets the annotation of this namespace and no other of the same name; nil removes the annotation.
func (r *Reconciler) annotate(ctx context.Context, ns *corev1.Namespace, text any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": ns.UID, "annotations": map[string]any{v1alpha1.VolumesRetainedAnnotation: text},
	}})
	if err != nil {
		return fmt.Errorf("encoding the volumes of namespace %s: %w", ns.Name, err)
	}
	target := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}
	if err := r.Direct.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager+"-retention")); err != nil {
		return fmt.Errorf("naming the volumes on namespace %s: %w", ns.Name, err)
	}
	return nil
}

// summary is the text of the annotation, such as "2 volumes: pvc-1, pvc-2".
func summary(volumes []string) string {
	switch len(volumes) {
	case 0:
		return "0 volumes"
	case 1:
		return "1 volume: " + volumes[0]
	}
	return fmt.Sprintf("%d volumes: %s", len(volumes), listed(volumes))
}

// message returns the event about a namespace with an allowed deletion.
func message(volumes []string) string {
	const allowed = "The namespace may be deleted. "
	switch len(volumes) {
	case 0:
		return allowed + "Its claims have no volumes to keep."
	case 1:
		return allowed + "This volume is kept: " + volumes[0]
	}
	return allowed + "These volumes are kept: " + listed(volumes)
}

// listed names the first maxNamed volumes.
func listed(volumes []string) string { return strings.Join(few.Of(volumes, maxNamed), ", ") }
