package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/controllers/plan"
)

// Diff returns the command diff. renderer renders Apps.
func Diff(c *call.Call, renderer plan.NewRenderer) *cobra.Command {
	p := &command{Call: c, renderer: renderer}
	var at string
	cmd := &cobra.Command{
		Use:   "diff APP",
		Short: "Show how the objects of an app differ from a commit, or between two commits",
		Long: `Show how the objects of an app differ from what a commit declares: the files of the current folder as they are, or with --revision a commit of the
clone there. The command compares as kubeop plan does, also if the commit does not change the app, so it shows what someone changed by hand.

With --revision A..B it compares what two commits render to, and not the cluster. The exit code is 2 if there are differences.

With --server it shows how the files of the app's folder differ between two commits, A..B with all of their digits, or A and the newest one. No
clone is needed; objects are neither rendered nor compared.`,
		Example: `  # With the files as they are now
  kubeop diff acme/shop/web

  # What the last two commits changed
  kubeop diff acme/shop/web --revision HEAD~2..HEAD`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteObject(target.App),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.diff(cmd.Context(), args[0], at)
		},
	}
	p.format.AddFlag(cmd, output.Table, markdown, output.JSON, output.YAML)
	cmd.Flags().StringVar(&p.repository, "repository", "", "name of the Repository (default: the one that declares the app)")
	cmd.Flags().StringVar(&at, "revision", ".", "commit, branch or tag of the clone, or two as A..B (default: its files as they are)")
	return cmd
}

func (p *command) diff(ctx context.Context, name, at string) error {
	of, err := p.Named(target.App, name)
	if err != nil {
		return err
	}
	manager, err := p.Through()
	switch {
	case err != nil:
		return err
	case manager != nil:
		return p.through(ctx, manager, of, at)
	}
	if p.only = of.Ref; p.repository == "" {
		repository, err := p.RepositoryOf(ctx, of)
		if err != nil {
			return err
		}
		p.repository = repository.Ref.Tenant
	}
	from, to, two := strings.Cut(at, "..")
	if !two {
		return p.run(ctx, at)
	}
	made, err := p.between(ctx, from, to)
	if err != nil {
		return err
	}
	return p.print(made)
}

// between compares what two commits render the App to.
func (p *command) between(ctx context.Context, from, to string) (*plan.Plan, error) {
	return p.withScratch(func(c client.Client, scratch string) (*plan.Plan, error) {
		var sides [2]plan.Commit
		var repository *v1alpha1.Repository
		for i, ref := range []string{from, to} {
			commit, err := ofCommit(ctx, ref)
			if err != nil {
				return nil, err
			}
			if repository, err = p.find(ctx, c, commit); err != nil {
				return nil, fmt.Errorf("%s: %w", ref, err)
			}
			sides[i] = commit.Commit
		}
		app, err := p.planner(c, scratch).Between(ctx, repository, sides[0], sides[1], p.only)
		if err != nil {
			return nil, err
		}
		return &plan.Plan{Repository: p.repository, Revision: from + ".." + to, Apps: []plan.App{app}}, nil
	})
}
