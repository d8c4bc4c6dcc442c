package plan

import (
	"context"
	"fmt"
	"os"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/delivery/budget"
)

// withScratch makes a plan with a client of the cluster and an empty folder, and removes the folder.
func (p *command) withScratch(makePlan func(c client.Client, scratch string) (*plan.Plan, error)) (*plan.Plan, error) {
	scratch, err := os.MkdirTemp("", "kubeop-plan-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // What is left is below the folder for temporary files.
	c, err := p.Client()
	if err != nil {
		return nil, err
	}
	return makePlan(c, scratch)
}

// planner returns a Planner with the rights of the person. scratch is an empty folder.
func (p *command) planner(c client.Client, scratch string) *plan.Planner {
	return &plan.Planner{
		Client: c, Direct: c, Limits: budget.Default(), Clock: p.Clock,
		Connect: func(ctx context.Context, folders plan.Folders) (*plan.Connection, error) {
			config, err := p.Config()
			if err != nil {
				return nil, err
			}
			itself, err := mayImpersonate(ctx, c)
			if err != nil {
				return nil, err
			}
			local, err := plan.Local(ctx, plan.DryRun(config, itself), c, scratch)
			if err != nil {
				return nil, err
			}
			return &plan.Connection{Renderer: p.renderer(local, folders), Itself: itself}, nil
		},
	}
}

// mayImpersonate reports whether the person may act as the deployers of projects, as administrators may.
func mayImpersonate(ctx context.Context, c client.Client) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Name: v1alpha1.Deployer},
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking what you may do: %w", err)
	}
	return review.Status.Allowed, nil
}
