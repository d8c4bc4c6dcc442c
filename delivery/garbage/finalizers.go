package garbage

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// RemoveFinalizers removes foreign finalizers from those objects that are being deleted and carry all labels of owner, and returns which it
// removed. It costs a request for each entry.
func RemoveFinalizers(ctx context.Context, c client.Client, entries []v1alpha1.InventoryEntry, owner map[string]string) ([]string, error) {
	var removed []string
	var errs []error
	for _, e := range entries {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		kind := metadata.ServedAs(c, id.Versioned(e.Version))
		live, err := metadata.Read(ctx, c, kind, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
		if live == nil || !(&Removal{Owner: owner}).owns(live) {
			errs = append(errs, inventory.ErrorAbout(id, err))
			continue
		}
		taken, err := finalizer.TakeOff(ctx, c, kind, live)
		if taken != "" {
			removed = append(removed, taken)
		}
		if !apierrors.IsConflict(err) { // If it changed meanwhile, read it again.
			errs = append(errs, inventory.ErrorAbout(id, err))
		}
	}
	return removed, errors.Join(errs...)
}
