package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// uninstall removes the release with everything in it, but for claims that hold data, and waits until it is gone. Claims that belong to its
// objects are taken along only if it was confirmed that they go.
func (r *Reconciler) uninstall(ctx context.Context, s *scope, claimsGo bool) error {
	request := r.request(ctx, s)
	if claimsGo {
		request.Owned = func(context.Context) (map[types.UID][]string, error) { return nil, nil }
	}
	done, err := r.Releases.Uninstall(ctx, request)
	var leaving *fault.Terminating
	switch {
	case errors.As(err, new(*fault.ClaimsInTheWay)):
		return claimsInTheWay(err, fmt.Sprintf("set deletionPolicy: Orphan to leave all as it is, or to delete them set claimDeletionPolicy: Delete and the annotation %s: %s",
			v1alpha1.ConfirmAnnotation, v1alpha1.ConfirmAll))
	case errors.Is(err, fault.ErrLocked):
		return step.Wait(v1alpha1.ReleaseLockedReason, time.Second, "%w", err)
	case errors.As(err, &leaving):
		return r.waitLooking(s, "leaving", farewell, nextLook, err)
	case err != nil:
		return step.Fail(v1alpha1.UninstallFailedReason, err)
	case !done:
		return r.wait(s, "uninstall", farewell, fmt.Errorf("uninstalling release %s", request.Name))
	}
	s.inventory = v1alpha1.Inventory{Entries: clusterScoped(s.inventory.Entries)}
	return nil
}
