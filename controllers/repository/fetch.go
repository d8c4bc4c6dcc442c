package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch"
)

// fetch brings the newest commit of the ref into the local object store. The remote is asked when the interval is over,
// the spec changed, or a push or a person asked for it; not each time a watch wakes the repository.
func (r *Reconciler) fetch(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, s.repository.Spec.Within())
	defer cancel()
	token, _ := meta.ReconcileAnnotationValue(s.repository.GetAnnotations())
	question := fmt.Sprintf("%d/%s", s.repository.Generation, token)
	maxAge := s.repository.Spec.Every() * 9 / 10
	commit, err := r.Commits.Get(s.repository.Name, question, maxAge, func() (fetch.Commit, error) {
		source, err := r.source(ctx, s.repository)
		if err != nil {
			return fetch.Commit{}, err
		}
		return r.Git.Fetch(ctx, source)
	})
	s.commit = commit
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

// source returns where to fetch from and as whom.
func (r *Reconciler) source(ctx context.Context, repository *v1alpha1.Repository) (fetch.Git, error) {
	source := fetch.Git{URL: repository.Spec.URL, Ref: repository.Spec.Ref}
	ref := repository.Spec.SecretRef
	if ref == nil {
		return source, nil
	}
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return source, fmt.Errorf("secret %s/%s of secretRef does not exist: create it: %w", r.Namespace, ref.Name, fetch.ErrInvalid)
	}
	if err != nil {
		return source, fmt.Errorf("reading secret %s/%s: %w", r.Namespace, ref.Name, err)
	}
	source.Auth, err = fetch.AuthFromSecret(secret.Data)
	return source, err
}

// forget drops what is remembered of a repository that goes.
func (r *Reconciler) forget(_ context.Context, s *scope) error {
	r.Commits.Forget(s.repository.Name)
	r.Tree.Forget(s.repository.Name)
	return nil
}
