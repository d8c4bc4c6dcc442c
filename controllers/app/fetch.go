package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/release"
)

// fetch brings the source at hand: the app's own folder where the spec refers to it, a commit, a chart.
func (r *Reconciler) fetch(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, s.app.Spec.Within())
	defer cancel()
	if usesFolder(&s.app.Spec) {
		folder, err := r.Folder(ctx, s.app)
		if err != nil {
			return err
		}
		s.folder = folder
	}
	return sourceOutcome(r.fetchSource(ctx, s))
}

// usesFolder reports whether the spec names files beside app.yaml.
func usesFolder(spec *v1alpha1.AppSpec) bool {
	return (spec.Raw != nil && spec.Raw.Path != "") || (spec.Helm != nil && (spec.Helm.Path != "" || len(spec.Helm.ValuesFiles) > 0))
}

func (r *Reconciler) fetchSource(ctx context.Context, s *scope) error {
	switch {
	case s.app.Spec.Git != nil:
		return r.fetchCommit(ctx, s)
	case s.app.Spec.Helm != nil && s.app.Spec.Helm.Path == "":
		return r.fetchChart(ctx, s)
	case s.app.Spec.Helm != nil:
		return chartOfFolder(s)
	}
	s.revision = declaredRevision(s.app)
	return nil
}

func (r *Reconciler) fetchCommit(ctx context.Context, s *scope) error {
	spec := s.app.Spec.Git
	commit, err := r.Commits.Get(string(s.app.UID), fetch.QuestionOf(s.app), func() (fetch.Commit, error) {
		auth, err := fetch.ReadAuth(ctx, s.client, s.app.Namespace, spec.SecretRef)
		if err != nil {
			return fetch.Commit{}, err
		}
		return r.Git.Fetch(ctx, fetch.Git{URL: spec.URL, Ref: spec.Ref, Auth: auth, Tenant: s.owner.Tenant})
	})
	s.commit, s.revision = commit, commit.Revision
	return err
}

func (r *Reconciler) fetchChart(ctx context.Context, s *scope) error {
	spec := s.app.Spec.Helm
	archive, err := r.Archives.Get(string(s.app.UID), fetch.QuestionOf(s.app), func() (fetch.ChartArchive, error) {
		auth, err := fetch.ReadAuth(ctx, s.client, s.app.Namespace, spec.SecretRef)
		if err != nil {
			return fetch.ChartArchive{}, err
		}
		return r.Charts.Fetch(ctx, fetch.Chart{
			Repository: spec.Repository, Name: spec.Chart, Version: spec.Version, Insecure: spec.Insecure,
			Auth: auth, Tenant: s.owner.Tenant,
		})
	})
	s.chart, s.revision = release.Chart{Archive: archive.Path, Digest: archive.Digest}, archive.Version
	return err
}

func chartOfFolder(s *scope) error {
	files, err := s.folder.Sub(s.app.Spec.Helm.Path)
	if err != nil {
		return err
	}
	digest, err := files.Digest(".")
	s.chart, s.revision = release.Chart{Files: files, Digest: digest}, declaredRevision(s.app)
	return err
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
	case final:
		return step.Stop(reason, err)
	}
	return step.Fail(reason, err)
}
