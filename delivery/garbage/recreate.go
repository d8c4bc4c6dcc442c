package garbage

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/inventory"
)

// Recreatable decides whether an object that refuses a change may be deleted and created anew. DryRun is the answer to a dry run of its
// creation: the API server finds what is wrong with an object before it finds that one exists. So immutable is false for an object that is
// invalid in any case, which would be refused anew, too. Loss says what else would be lost with an object of the kind and what to do
// instead; then it is never deleted. Whether claims that hold data would go with this one object is looked up when it is deleted.
func Recreatable(kind schema.GroupKind, dryRun error) (immutable bool, loss string) {
	if dryRun != nil && !apierrors.IsAlreadyExists(dryRun) {
		return false, ""
	}
	return true, inventory.LossOf(kind)
}
