package apply

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Free takes foreign finalizers off those of the objects that are being deleted and carry every label of owner, and says which. It
// costs a request for each entry.
func (a *Applier) Free(ctx context.Context, c client.Client, entries []v1alpha1.InventoryEntry, owner map[string]string) ([]string, error) {
	var freed []string
	var errs []error
	for _, e := range entries {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		kind := servedAs(c, id.Versioned(e.Version))
		live, err := ask(ctx, c, kind, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
		if live == nil || err != nil || !(&Removal{Owner: owner}).owns(live) {
			errs = append(errs, inventory.ErrorAbout(id, err))
			continue
		}
		taken, err := finalizer.TakeOff(ctx, c, kind, live)
		if taken != "" {
			freed = append(freed, taken)
		}
		if !apierrors.IsConflict(err) { // One that changed meanwhile is looked at again.
			errs = append(errs, inventory.ErrorAbout(id, err))
		}
	}
	return freed, errors.Join(errs...)
}
