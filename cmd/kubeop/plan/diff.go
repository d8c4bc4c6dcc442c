package plan

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
)

// Diff returns the command diff.
func Diff(c *call.Call) *cobra.Command {
	p := &command{Call: c}
	var at string
	cmd := &cobra.Command{
		Use:   "diff APP",
		Short: "Show how the objects of an app differ from a commit, or between two commits",
		Long: `Show how the objects of an app differ from what a commit declares: the files of the current folder as they are, or with --revision a commit of the
clone there. The command compares as kubeop plan does, also if the commit does not change the app, so it shows what someone changed by hand.

With --revision A..B it compares what two commits render to, and not the cluster. The exit code is 2 if there are differences.`,
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
	cmd.Flags().StringVar(&p.repository, "repository", "", "name of the Repository (default: the tenant's)")
	cmd.Flags().StringVar(&at, "revision", ".", "commit, branch or tag of the clone, or two as A..B (default: its files as they are)")
	return cmd
}

func (p *command) diff(ctx context.Context, name, at string) error {
	of, err := p.Named(target.App, name)
	if err != nil {
		return err
	}
	if p.only = of.Ref; p.repository == "" {
		p.repository = of.Ref.Tenant
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
func (p *command) between(ctx context.Context, from, to string) (*Plan, error) {
	scratch, err := os.MkdirTemp("", "kubeop-plan-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // What is left is below the folder for temporary files.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := p.Client()
	if err != nil {
		return nil, err
	}
	config, err := p.Config()
	if err != nil {
		return nil, err
	}
	var sides [2]*delivery
	for i, ref := range []string{from, to} {
		commit, err := ofCommit(ctx, ref)
		if err != nil {
			return nil, err
		}
		k, err := connect(ctx, config, c, func(a *v1alpha1.App) (*folder.Folder, error) {
			return commit.folder(a.Annotations[v1alpha1.TreeAnnotation]), nil
		}, scratch)
		if err != nil {
			return nil, err
		}
		if sides[i], err = p.at(ctx, k, c, commit); err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
	}
	before, after := sides[0], sides[1]
	out := App{App: p.only.Path(), Source: after.made.Revision, Changes: differences(byID(before.objects()), byID(after.objects()), after.app.Namespace, func(s string) string {
		return before.made.Mask(after.made.Mask(s))
	})}
	return &Plan{Repository: p.repository, Revision: from + ".." + to, Apps: []App{out}}, nil
}

// at renders the App as a commit declares it.
func (p *command) at(ctx context.Context, k *cluster, c client.Client, commit *snapshot) (*delivery, error) {
	repository, err := p.find(ctx, c, commit)
	if err != nil {
		return nil, err
	}
	compared, err := compare(ctx, c, repository, commit)
	if err != nil {
		return nil, err
	}
	app, err := compared.one(p.only)
	if err != nil {
		return nil, err
	}
	d := &delivery{app: app}
	if err := k.place(ctx, compared, d); err != nil {
		return nil, err
	}
	k.render(ctx, d)
	return d, d.err
}
