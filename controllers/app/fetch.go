package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		if errors.Is(err, fetch.ErrNotFound) {
			return step.Wait(v1alpha1.ProgressingReason, time.Second, "waits for its repository to be fetched: %w", err)
		}
		if err != nil {
			return step.Fail(v1alpha1.FetchFailedReason, err)
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
	commit, err := r.Commits.Get(string(s.app.UID), question(s.app), maxAge(s.app), func() (fetch.Commit, error) {
		auth, err := credentials(ctx, s, spec.SecretRef)
		if err != nil {
			return fetch.Commit{}, err
		}
		return r.Git.Fetch(ctx, fetch.Git{URL: spec.URL, Ref: spec.Ref, Auth: auth})
	})
	s.commit, s.revision = commit, commit.Revision
	return err
}

func (r *Reconciler) fetchChart(ctx context.Context, s *scope) error {
	spec := s.app.Spec.Helm
	archive, err := r.Archives.Get(string(s.app.UID), question(s.app), maxAge(s.app), func() (fetch.ChartArchive, error) {
		auth, err := credentials(ctx, s, spec.SecretRef)
		if err != nil {
			return fetch.ChartArchive{}, err
		}
		return r.Charts.Fetch(ctx, fetch.Chart{
			Repository: spec.Repository, Name: spec.Chart, Version: spec.Version, Insecure: spec.Insecure, Auth: auth,
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

// question changes when the source has to be asked again before the interval is over: with the spec, or on request.
func question(app *v1alpha1.App) string {
	token, _ := meta.ReconcileAnnotationValue(app.GetAnnotations())
	return fmt.Sprintf("%d/%s", app.Generation, token)
}

// maxAge is a little less than the interval, whose jitter would otherwise let every second look pass unasked.
func maxAge(app *v1alpha1.App) time.Duration { return app.Spec.Every() * 9 / 10 }

// credentials reads a Secret of the app's namespace as the deployer.
func credentials(ctx context.Context, s *scope, ref *v1alpha1.LocalSecretReference) (fetch.Auth, error) {
	if ref == nil {
		return fetch.Auth{}, nil
	}
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.app.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return fetch.Auth{}, fmt.Errorf("secret %s/%s of secretRef does not exist: create it: %w", s.app.Namespace, ref.Name, fetch.ErrInvalid)
	}
	if err != nil {
		return fetch.Auth{}, fmt.Errorf("reading secret %s/%s: %w", s.app.Namespace, ref.Name, err)
	}
	return fetch.AuthFromSecret(secret.Data)
}

// sourceOutcome tells faults of the source that only a change can mend from those that time mends.
func sourceOutcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fetch.ErrAuthentication):
		return step.Stop(v1alpha1.AuthenticationFailedReason, err)
	case errors.Is(err, fetch.ErrNotFound):
		return step.Stop(v1alpha1.SourceNotFoundReason, err)
	case errors.Is(err, fetch.ErrInvalid), errors.Is(err, fetch.ErrTooLarge):
		return step.Stop(v1alpha1.InvalidSourceReason, err)
	}
	return step.Fail(v1alpha1.FetchFailedReason, err)
}
