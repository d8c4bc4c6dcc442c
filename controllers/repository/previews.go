package repository

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/preview"
	"github.com/kubeop/kubeop/controllers/repository/queue"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/host"
	"github.com/kubeop/kubeop/gitops/identity"
	gitpreview "github.com/kubeop/kubeop/gitops/preview"
	"github.com/kubeop/kubeop/gitops/tree"
)

// addPreviews adds the previews of branches to what the commit declares.
func (r *Reconciler) addPreviews(ctx context.Context, s *scope, now *tree.Tree) error {
	s.found = now
	if s.repository.Spec.Tenant == "" || !now.Usable() {
		return nil
	}
	tenant, err := r.tenant(ctx, s.repository.Spec.Tenant)
	if err != nil {
		return err
	}
	repository, before := s.repository.DeepCopy(), s.progress.tree
	var read []*tree.Project
	result, err := r.Previews.Read(ctx, preview.Request{
		Repository: repository, Commit: s.commit, Parents: now.Parents(), Frozen: tenant.Spec.Frozen,
		Read: func(parent *v1alpha1.Project, of gitpreview.Preview, commit git.Commit) ([]string, error) {
			root, err := commit.Root.Sub(upstream.Folder(repository.Spec.Path))
			if err != nil {
				return nil, fmt.Errorf("spec.path: %w", err)
			}
			from := tree.Origin{Of: parent.Name, Branch: of.Name, Revision: commit.Revision, Author: commit.Author}
			project, err := r.Tree.Within(now.Limits).ReadPreview(files.Of(root), now.Scope, tree.PreviewOf(parent, of.Project, from), before)
			if err != nil {
				return nil, err
			}
			read = append(read, project)
			return now.ProblemsOf(parent, project), nil
		},
		Live: r.Client, Query: r.query(repository, s.every), Store: r.Git,
		Source:       func(ctx context.Context) (git.Source, error) { return r.SignedSource(ctx, repository) },
		PullRequests: func(ctx context.Context) ([]host.PullRequest, error) { return r.pullRequests(ctx, repository) },
	})
	if err != nil {
		return err
	}
	s.previews, s.found = *result, now.With(append(read, now.Kept(before, result.Stays)...))
	return nil
}

// pullRequests lists the open pull requests at the Git host.
func (r *Reconciler) pullRequests(ctx context.Context, repository *v1alpha1.Repository) ([]host.PullRequest, error) {
	auth, err := r.APIAuth(ctx, repository)
	if err != nil {
		return nil, err
	}
	git, err := host.Open(r.Network, host.Of(repository), auth, r.Steps.Clock.Now)
	if err != nil {
		return nil, fmt.Errorf("spec.previews.pullRequests needs the API of the Git host: %w; commitStatus of the repository names its type, its address and a Secret of its own", err)
	}
	defer git.Close()
	return git.PullRequests(ctx)
}

// own reports whether the commit itself declares an object; a branch declares those of a preview.
func (s *scope) own(ref identity.Ref) bool { return s.found.OriginOf(ref) == nil }

// previewsLeft reports whether objects of previews failed, or wait for a namespace.
func (s *scope) previewsLeft() bool {
	for ref := range s.progress.waiting {
		if !s.own(ref) {
			return true
		}
	}
	return len(s.unapplied) > 0
}

// previewStatuses returns what is known of the previews, with what the cluster refused of them, and what waits for long.
func (s *scope) previewStatuses(now time.Time) []v1alpha1.PreviewStatus {
	wrong := map[string][]string{}
	for _, p := range s.progress.refusals() {
		if !s.own(p.Of) {
			wrong[p.Of.Project] = append(wrong[p.Of.Project], p.String())
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.unapplied), queue.InOrder) {
		wrong[ref.Project] = append(wrong[ref.Project], s.unapplied[ref].Error())
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.progress.waiting), queue.InOrder) {
		if !s.own(ref) && now.Sub(s.progress.waiting[ref]) >= stuck {
			project := identity.Ref{Tenant: ref.Tenant, Project: ref.Project}.Key()
			wrong[ref.Project] = append(wrong[ref.Project], fmt.Sprintf("%s waits for its namespace, or for one of its name to be gone: `kubectl describe project %s -n %s` says why",
				ref, project.Name, project.Namespace))
		}
	}
	return preview.With(s.previews.Status, wrong)
}
