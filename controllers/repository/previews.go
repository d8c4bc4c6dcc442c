package repository

import (
	"context"

	"github.com/kubeop/kubeop/controllers/preview"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/tree"
)

// addPreviews adds the previews of branches to what the commit declares.
func (r *Reconciler) addPreviews(ctx context.Context, s *scope, now *tree.Tree) error {
	s.found = now
	if s.repository.Spec.Tenant == "" || !now.Usable() {
		return nil
	}
	repository := s.repository.DeepCopy()
	result, err := r.Previews.Read(ctx, preview.Request{
		Repository: repository, Commit: s.commit, Tree: now, Before: s.progress.tree, Reader: r.Tree.Within(now.Limits),
		Live: r.Client, Query: r.query(repository, s.every), Store: r.Git,
		Source: func(ctx context.Context) (git.Source, error) {
			source, err := r.Source(ctx, repository)
			if err != nil {
				return source, err
			}
			return r.signed(ctx, repository, source)
		},
	})
	if err != nil {
		return err
	}
	s.previews, s.found = *result, now.With(result.Projects)
	return nil
}
