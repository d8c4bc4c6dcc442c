package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/controllers/pullrequest"
	"github.com/kubeop/kubeop/controllers/repository"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/render/workload"
	"github.com/kubeop/kubeop/gitops/identity"
)

// pullRequests returns what plans the pull requests of Repositories.
func (s *shared) pullRequests(repositories *repository.Reconciler) *pullrequest.Planner {
	planner := s.planner()
	return &pullrequest.Planner{Options: pullrequest.Options{
		Queue: s.reports, Fetches: s.fetches, Plans: s.plans, Git: s.stores.Git, Network: s.network, Clock: s.clock, Repositories: repositories,
		Plan: func(ctx context.Context, repository *v1alpha1.Repository, commit git.Commit) (pullrequest.Comment, error) {
			of := plan.Commit{Revision: commit.Revision, Author: commit.Author, Root: commit.Root, Folder: commit.Folder}
			made, err := planner.Plan(ctx, repository, of, identity.Ref{})
			if err != nil {
				return pullrequest.Comment{}, err
			}
			return pullrequest.Comment{Body: made.Comment(), Summary: made.Summary()}, nil
		},
		Mark: plan.Mark, Wake: func(key types.NamespacedName) { s.wake("repository", key) },
	}}
}

// planner returns a Planner that renders in the sandbox, fetches past the SSRF guard, and impersonates the projects' deployers on connections that
// write nothing.
func (s *shared) planner() *plan.Planner {
	e := plan.Environment{
		Cluster: plan.Cluster{
			Config: plan.DryRun(s.mgr.GetConfig(), true), Client: client.NewDryRunClient(s.mgr.GetClient()), Deployers: s.deployers(),
			Discovery: s.served, Mapper: s.mapper, PodSecurity: s.podSecurity,
		},
		Sources: plan.Sources{
			Stores: s.stores, Fetches: s.fetches, Tags: image.NewStore(s.network, s.clock.Now, s.PlainRegistries, s.apart), Cosign: s.cosign,
		},
		Apart: s.apart, KeyService: s.keyService, Limits: s.limits.usual, Gateway: workload.GatewayOf(s.Gateway), IngressClass: s.IngressClass,
	}
	return &plan.Planner{
		Client: s.mgr.GetClient(), Direct: s.direct, Limits: s.limits.usual, Kinds: s.kinds.List, Clock: s.clock,
		Connect: func(_ context.Context, folders plan.Folders) (*plan.Connection, error) {
			return &plan.Connection{Renderer: s.Renderer(e, folders), Itself: true}, nil
		},
	}
}
