package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch"
)

// fetch brings the source at hand: the app's own folder where the spec refers to it, a commit, a chart.
func (r *Reconciler) fetch(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, s.app.Spec.Within())
	defer cancel()
	if !followsSource(&s.app.Spec) {
		s.memory.follows = ""
	}
	r.refer(s)
	if last, known := r.reads.LoadAndDelete(client.ObjectKeyFromObject(s.app)); known { // Only a build brings it back.
		s.reads = last.(fetch.Reads)
	}
	if usesFolder(&s.app.Spec) {
		folder, err := r.Folder(ctx, s.app)
		if err != nil {
			return err
		}
		s.folder = folder
	}
	return sourceOutcome(r.fetchSource(ctx, s))
}

// followsSource reports whether the app is made from a source that it shares with others; see shared.
func followsSource(spec *v1alpha1.AppSpec) bool {
	return (spec.Git != nil && spec.Git.SourceRef == nil) || (spec.Helm != nil && spec.Helm.Git != nil)
}

// usesFolder reports whether the spec names files beside app.yaml.
func usesFolder(spec *v1alpha1.AppSpec) bool {
	return (spec.Image != nil && len(spec.Image.ConfigFiles) > 0) || (spec.Raw != nil && spec.Raw.Path != "") || (spec.Helm != nil && (spec.Helm.Path != "" || len(spec.Helm.ValuesFiles) > 0))
}

func (r *Reconciler) fetchSource(ctx context.Context, s *scope) error {
	switch {
	case s.app.Spec.Image != nil:
		s.revision = declaredRevision(s.app)
		return r.chooseImage(ctx, s)
	case s.app.Spec.Git != nil:
		return r.fetchFiles(ctx, s)
	case s.app.Spec.Helm != nil:
		return r.fetchChart(ctx, s)
	}
	s.revision = declaredRevision(s.app)
	return nil
}

// question is what makes the source be asked again: also another version of the Secrets with its credentials.
func (r *Reconciler) question(ctx context.Context, s *scope) (fetch.Question, error) {
	q := fetch.QuestionOf(s.app)
	q.Request += " " + r.pushes.of(s.owner.Tenant, gitURL(&s.app.Spec))
	for _, secret := range secretRefsOf(&s.app.Spec) {
		version, err := r.Version(ctx, s.app.Namespace, "Secret", secret.Name)
		if err != nil {
			return q, err
		}
		q.Request += " " + version
	}
	return q, nil
}

// declaredRevision is the commit that declared the app, or for an app that was not declared in Git its generation.
func declaredRevision(app *v1alpha1.App) string {
	if revision := app.Annotations[v1alpha1.RevisionAnnotation]; revision != "" {
		return revision
	}
	return fmt.Sprintf("generation %d", app.Generation)
}

// sourceOutcome tells faults of the source that only a change can mend from those that time mends.
func sourceOutcome(err error) error {
	reason, final := fetch.Verdict(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fetch.ErrBusy):
		return step.Wait(reason, 5*time.Second, "%w", err)
	case errors.Is(err, fetch.ErrNotReady):
		return step.Wait(reason, time.Minute, "%w", err)
	case final:
		return step.Stop(reason, err)
	}
	return step.Fail(reason, err)
}
