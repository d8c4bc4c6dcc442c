package garbage

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/inventory"
)

// Recreatable decides whether an object that refuses a change may be deleted and created anew. DryRun is the result of a dry run of the
// creation. The API server validates an object before it checks whether one exists, so immutable is false for an object that is invalid in
// any case and could not be recreated. Loss says what else would be lost with an object of the kind, and what to do instead; such an object
// is never deleted. Whether claims that hold data would be deleted with this one object is checked at its deletion.
func Recreatable(kind schema.GroupKind, dryRun error) (immutable bool, loss string) {
	if dryRun != nil && !apierrors.IsAlreadyExists(dryRun) {
		return false, ""
	}
	return true, inventory.LossOf(kind)
}
