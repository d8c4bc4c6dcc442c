package repository

import (
	"context"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch"
)

// fetch brings the newest commit of the ref into the local object store. The remote is asked when the interval is over,
// the spec changed, or a push or a person asked for it; not each time a watch wakes the repository.
func (r *Reconciler) fetch(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, s.repository.Spec.Within())
	defer cancel()
	commit, err := r.Commits.Get(string(s.repository.UID), fetch.QuestionOf(s.repository), func() (fetch.Commit, error) {
		source, err := r.source(ctx, s.repository)
		if err != nil {
			return fetch.Commit{}, err
		}
		return r.newest(ctx, s.repository, source)
	})
	if err == nil {
		s.commit = commit
		return r.accept(ctx, s)
	}
	reason, final := fetch.Verdict(err)
	if final {
		return step.Stop(reason, err)
	}
	return step.Fail(reason, err)
}

// source returns where to fetch from and as whom.
func (r *Reconciler) source(ctx context.Context, repository *v1alpha1.Repository) (fetch.Git, error) {
	auth, err := fetch.ReadAuth(ctx, r.Direct, r.Namespace, repository.Spec.SecretRef)
	return fetch.Git{URL: repository.Spec.URL, Ref: repository.Spec.Ref, Auth: auth, Tenant: fetch.RepositoryTenant(repository.Name)}, err
}

// forget drops what is remembered of a repository that goes.
func (r *Reconciler) forget(_ context.Context, s *scope) error {
	r.Commits.Forget(string(s.repository.UID))
	r.records.forget(s.repository.UID, s.repository.Name)
	r.Refusals.Forget(s.repository.Name)
	return nil
}
