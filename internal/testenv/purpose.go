package testenv

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// DeleteOnPurpose deletes an object that the chart's policies protect, as an administrator does: it confirms the deletion by an annotation with
// the object's name first. withData also permits to delete a namespace before its volumes are kept.
func DeleteOnPurpose(ctx context.Context, c client.Client, o client.Object, withData bool) error {
	name := o.GetName()
	if withData {
		name += "/with-data"
	}
	allow := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AllowDeletionAnnotation, name)
	if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, allow)); err != nil {
		return fmt.Errorf("allowing the deletion of %s: %w", o.GetName(), err)
	}
	return c.Delete(ctx, o)
}
