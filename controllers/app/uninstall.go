package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/release"
)

// uninstall removes the release with everything in it and waits until it is gone.
func (r *Reconciler) uninstall(ctx context.Context, s *scope) error {
	request := r.request(ctx, s)
	done, err := r.Releases.Uninstall(ctx, request)
	var leaving *release.Terminating
	switch {
	case errors.Is(err, release.ErrLocked):
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
