package step

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Withdraw removes an annotation by which a person confirmed something, so that it is used only once. It fails if obj is outdated: another
// confirmation that was written meanwhile is handled by the next Reconcile. Withdraw does not change obj.
func Withdraw(ctx context.Context, c client.Client, obj Object, confirmation string) error {
	if _, there := obj.GetAnnotations()[confirmation]; !there {
		return nil
	}
	used := obj.DeepCopyObject().(Object)
	delete(used.GetAnnotations(), confirmation)
	if err := c.Patch(ctx, used, client.MergeFromWithOptions(obj.DeepCopyObject().(Object), client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("removing the confirmation %s of %s: %w", confirmation, obj.GetName(), err)
	}
	return nil
}
