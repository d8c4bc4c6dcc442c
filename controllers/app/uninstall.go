package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// uninstall uninstalls the release. Claims stay, unless a person confirmed their deletion and the policy is not Retain: then they are
// deleted afterwards. Otherwise the uninstallation does not begin while objects of the release own claims, which would be deleted with
// their owners.
func (r *releaser) uninstall(ctx context.Context, s *scope) error {
	retain, err := r.pruner.Retains(ctx, s.Subject)
	if err != nil {
		return err
	}
	claimsGo := prune.RemovalConfirmed(s.App) && !retain
	if err := r.uninstallRelease(ctx, s, claimsGo); err != nil || !claimsGo {
		return err
	}
	return prune.DeleteClaims(ctx, s.Subject)
}

// uninstallRelease uninstalls the release, except claims that hold data, and waits until it is gone. Claims owned by its objects are
// deleted with them only if claimsGo is set.
func (r *releaser) uninstallRelease(ctx context.Context, s *scope, claimsGo bool) error {
	request := r.request(ctx, s)
	if claimsGo {
		request.Policy.Owned = func(context.Context) (map[types.UID][]string, error) { return nil, nil }
	}
	done, err := r.engine.Uninstall(ctx, request)
	var leaving *fault.Terminating
	switch {
	case errors.As(err, new(*fault.ClaimsInTheWay)):
		return prune.ClaimsInTheWay(err, fmt.Sprintf("to keep everything, %s; to delete the claims too, %s, and %s",
			command.Set(s.App, "deletionPolicy", string(v1alpha1.AppDeletionOrphan)),
			command.Set(s.App, "claimDeletionPolicy", string(v1alpha1.ClaimDelete)),
			command.Annotate(command.Admin.In(v1alpha1.TenantOf(s.App.Namespace)), "app", s.App, v1alpha1.ConfirmAnnotation, v1alpha1.ConfirmAll)))
	case errors.Is(err, fault.ErrLocked):
		return step.Wait(v1alpha1.ReleaseLockedReason, time.Second, "%w", err)
	case errors.As(err, &leaving):
		waited := s.Waited("leaving")
		return step.WaitQuietly(waited, step.QuietRemoval, step.NextLook(waited), err)
	case err != nil:
		return step.Fail(v1alpha1.UninstallFailedReason, err)
	case !done:
		return step.WaitQuietly(s.Waited("uninstall"), step.QuietRemoval, step.LastLook, fmt.Errorf("uninstalling release %s", request.Name))
	}
	s.inventory = v1alpha1.Inventory{Entries: record.Outside(s.inventory.Entries, s.App.Namespace)}
	return nil
}
