package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// byHand reports whether an entry of managedFields is of a person who changed with kubectl what an object does. Such a
// change adds fields that server-side apply alone would leave for ever.
//
// Some hands are welcome: labels and annotations, among them the requests that kubeop itself asks people for; a restart
// (kubectl rollout); and suspending an object of this API, which stops kubeop from undoing anything.
func byHand(f metav1.ManagedFieldsEntry) bool {
	if !strings.HasPrefix(f.Manager, "kubectl") || f.Manager == "kubectl-rollout" || f.Subresource != "" || f.FieldsV1 == nil {
		return false
	}
	fields := map[string]any{}
	if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	delete(fields, "f:metadata")
	spec, _ := fields["f:spec"].(map[string]any)
	if strings.HasPrefix(f.APIVersion, v1alpha1.Group+"/") {
		delete(spec, "f:suspend")
		delete(spec, ".")
	}
	if len(spec) == 0 {
		delete(fields, "f:spec")
	}
	return len(fields) > 0
}

// restored reports whether a tool made an object of this API from a backup: kubeop did not apply it. All its fields are then the
// tool's, also those that left Git since. Of other kinds some may as well be a controller's.
func restored(o *unstructured.Unstructured, seen metav1.Object) bool {
	return o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group && !Applied(seen)
}

// takeBack makes what people changed by hand ours, so that the next apply removes what is not in the manifest, and gives up
// our claim to what is ceded, so that it does not. Nothing but managedFields is written.
func takeBack(ctx context.Context, c client.Client, o *unstructured.Unstructured, seen metav1.Object, left ceded) error {
	hands, release := sets.New[string](), false
	for _, f := range seen.GetManagedFields() {
		if byHand(f) {
			hands.Insert(f.Manager)
		}
		release = left.release(f.DeepCopy()) || release
	}
	if hands.Len() == 0 && !release && !restored(o, seen) {
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		return rewriteOwners(ctx, c, o, func(live *metav1.PartialObjectMetadata) (bool, error) {
			if live.UID != seen.GetUID() {
				return false, nil
			}
			if restored(o, live) {
				hands.Insert(writers(live)...)
			}
			if err := csaupgrade.UpgradeManagedFields(live, hands, v1alpha1.FieldManager); err != nil {
				return false, err
			}
			for i := range live.ManagedFields {
				left.release(&live.ManagedFields[i])
			}
			return true, nil
		})
	})
	if err != nil {
		return fmt.Errorf("settling who owns its fields: %w", err)
	}
	return nil
}

// writers are those who wrote fields of an object without applying them.
func writers(o metav1.Object) []string {
	var names []string
	for _, f := range o.GetManagedFields() {
		if f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == "" {
			names = append(names, f.Manager)
		}
	}
	return names
}

// rewriteOwners writes the managedFields that the object is to have, as settle makes them; it says false of another object, which
// has taken the place of the one that was seen. The watch holds only part of them; the patch has to carry all.
func rewriteOwners(ctx context.Context, c client.Client, o *unstructured.Unstructured, settle func(*metav1.PartialObjectMetadata) (bool, error)) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if same, err := settle(live); !same || err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": live.ManagedFields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion},
	})
	if err != nil {
		return err
	}
	return c.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch))
}
