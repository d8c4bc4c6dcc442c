package handover

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// AwaitRelease turns the error that a Helm release belongs to another App into a wait if that App is about to leave the release: it is being deleted, has
// another release name, or may be deleted by the commit that is being applied. It returns every other error as it is. When the other App is gone, this one
// is woken in any case.
func (t *Transfers) AwaitRelease(ctx context.Context, s *subject.Subject, err error) error {
	var taken *fault.Taken
	if !errors.As(err, &taken) {
		return err
	}
	t.declarations.await(s.App.Namespace, s.App.Name, true)
	// A Repository reports a commit after it has deleted Apps, so that the App is read after this line.
	syncing := t.Syncing(ctx, s) != ""
	waited := s.Waited("release " + taken.Release)
	owner := &v1alpha1.App{}
	failed := t.Direct.Get(ctx, client.ObjectKey{Namespace: s.App.Namespace, Name: taken.App}, owner)
	switch {
	case apierrors.IsNotFound(failed) && waited < step.Quiet:
		return step.Soon(step.Quiet) // It may have uninstalled the release since that was read.
	case apierrors.IsNotFound(failed):
		return err
	case failed != nil:
		return fmt.Errorf("reading app %s, to which release %s belongs: %w", taken.App, taken.Release, failed)
	case owner.DeletionTimestamp == nil && owner.Spec.Helm != nil && owner.ReleaseName() == taken.Release && !syncing:
		return err
	}
	return step.Wait(v1alpha1.ReleaseTakenReason, step.NextLook(waited), "waits until app %s has uninstalled release %s, which belongs to it", taken.App, taken.Release)
}
