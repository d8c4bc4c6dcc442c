// Package finalizer handles what holds a deletion: finalizers that no controller removes, and pods that do not end. It names them, and
// removes them if an administrator decided so.
package finalizer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// claimProtection is Kubernetes' finalizer that keeps a claim, and so its data, while a pod uses it.
const claimProtection = "kubernetes.io/pvc-protection"

var (
	podKind   = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	claimKind = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
)

// Terminating is an object that is being deleted and still exists.
type Terminating struct {
	Kind, Name string
	// Finalizers hold the object.
	Finalizers []string
	// Until is when a pod without finalizers ends at the latest; zero for anything else.
	Until time.Time
}

// Of returns the Terminating of an object of a kind.
func Of(kind string, o metav1.Object) Terminating {
	return Terminating{Kind: kind, Name: o.GetName(), Finalizers: o.GetFinalizers()}
}

// String says what the object waits for, such as "Kind/name, which the finalizer x holds".
func (t Terminating) String() string {
	name := t.Kind + "/" + t.Name
	switch {
	case t.Foreign():
		return fmt.Sprintf("%s, which the finalizer %s holds", name, strings.Join(t.Finalizers, ", "))
	case len(t.Finalizers) == 0 && !t.Until.IsZero():
		return fmt.Sprintf("%s, which may take until %s to end", name, t.Until.UTC().Format(time.RFC3339))
	case len(t.Finalizers) == 0:
		return name
	case t.Finalizers[0] == claimProtection:
		return name + ", until no pod uses it"
	}
	return name + ", until what it owns is gone"
}

// Foreign reports whether a finalizer holds the object that Kubernetes does not remove by itself, so that TakeOff may remove it.
func (t Terminating) Foreign() bool {
	switch len(t.Finalizers) {
	case 0:
		return false
	case 1:
		return t.Finalizers[0] != metav1.FinalizerDeleteDependents && t.Finalizers[0] != claimProtection
	}
	return true
}

// TakeOff removes the finalizers of exactly this object in this state, if it is being deleted, except those of kubeop and the protection of
// a claim in use. The cleanup that the finalizers stand for is not done. It returns which ones it removed; "" for none.
func TakeOff(ctx context.Context, c client.Client, kind schema.GroupVersionKind, o metav1.Object) (string, error) {
	var kept, taken []string
	for _, f := range o.GetFinalizers() {
		if strings.HasPrefix(f, v1alpha1.Group+"/") || (f == claimProtection && kind == claimKind) {
			kept = append(kept, f)
		} else {
			taken = append(taken, f)
		}
	}
	if len(taken) == 0 || o.GetDeletionTimestamp() == nil {
		return "", nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "finalizers": kept,
	}})
	if err != nil {
		return "", fmt.Errorf("removing the finalizers from %s/%s: %w", kind.Kind, o.GetName(), err)
	}
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
	target.SetGroupVersionKind(kind)
	if err := c.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("removing the finalizers from %s/%s: %w", kind.Kind, o.GetName(), err)
	}
	return fmt.Sprintf("%s from %s/%s", strings.Join(taken, ", "), kind.Kind, o.GetName()), nil
}

// Forced reports whether administrators decided that the deletion of an object of kubeop's API does not wait for foreign finalizers.
func Forced(o client.Object) bool {
	return o.GetDeletionTimestamp() != nil && o.GetAnnotations()[v1alpha1.ForceRemovalAnnotation] == o.GetName()
}
