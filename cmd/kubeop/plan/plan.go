// Package plan has the commands plan and diff, which print what controllers/plan computes.
package plan

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/gitops/identity"
)

// command is one call of plan or diff.
type command struct {
	*call.Call
	renderer plan.NewRenderer
	format   output.Format
	// repository is the name of the Repository.
	repository string
	// comment is the number of the pull request at host that gets the plan as a comment; 0 for none.
	comment int
	host    git.Host
	// root is the root of the clone that was planned.
	root string
	// only is the App that diff compares; zero for all that the commit changes.
	only identity.Ref
	// preview is the branch, or the number of the pull request, whose preview is planned; "" for the commit itself.
	preview string
}

// markdown is the format for a comment on a pull request.
const markdown output.Format = "markdown"

// Command returns the command plan. renderer renders Apps.
func Command(c *call.Call, renderer plan.NewRenderer) *cobra.Command {
	p := &command{Call: c, renderer: renderer}
	cmd := &cobra.Command{
		Use:   "plan [DIR|REF]",
		Short: "Show what a commit would change, before it lands",
		Long: `Show what a commit would change: the projects and apps that it creates, changes, deletes or holds, and for each changed app the objects with the
fields that change. Git apps, charts and images are fetched, rendered and checked by the code of the operator. Nothing is written to the cluster.
With the right to impersonate the deployers of projects, which administrators have, each object is tried by a dry run of the API server, so that its
refusals are listed. Otherwise objects are compared with the live ones. What exceeds the limits of the tenant is refused. Secrets are masked.

DIR is a clone with changes that need not be committed (default: the current folder). REF is a commit, branch or tag of the clone in the current
folder, such as the head of a pull request. The exit code is 2 if the commit changes something.

With --preview, the plan is that of the preview of a branch or of a pull request, if DIR or REF were pushed to it now: its project, its apps and their
hosts. What the projects in the cluster say about previews counts, as it does for kubeop.

--comment also writes the plan to a pull request at the Git host, and deletes the last one of the same Repository there.`,
		Example: `  # Before a commit
  kubeop plan

  # What a branch would change, for people to read
  kubeop plan origin/feature -o markdown

  # The preview that a branch would have
  kubeop plan origin/feature/login --preview feature/login

  # In CI: the plan as a comment on pull request 7, in place of the last one
  kubeop plan --comment 7 --token-file token`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), append(args, ".")[0]) },
	}
	p.format.AddFlag(cmd, output.Table, markdown, output.JSON, output.YAML)
	cmd.Flags().StringVar(&p.repository, "repository", "", whichRepository)
	cmd.Flags().StringVar(&p.preview, "preview", "", "plan the preview that this branch, or the pull request of this number, would have with the files")
	cmd.Flags().IntVar(&p.comment, "comment", 0, "number of a pull request that gets the plan as a comment")
	p.host.AddFlags(cmd.Flags())
	return cmd
}

// run prints the plan.
func (p *command) run(ctx context.Context, arg string) error {
	made, err := p.make(ctx, arg)
	if err == nil && p.comment > 0 {
		err = p.publish(ctx, made)
	}
	if err != nil {
		return err
	}
	return p.print(made)
}

// publish writes the plan to the pull request.
func (p *command) publish(ctx context.Context, made *plan.Plan) error {
	at, err := git.RemoteURL(ctx, p.root)
	if err != nil {
		return err
	}
	repository, err := p.host.Open(ctx, at, p.Clock.Now)
	if err != nil {
		return err
	}
	defer repository.Close()
	of := made.Repository
	if p.preview != "" { // A pull request may have both plans.
		of += " preview"
	}
	return repository.ReplaceComment(ctx, p.comment, plan.Mark(of), made.Comment())
}

// print prints a plan. If it has changes, the exit code is Differences.
func (p *command) print(made *plan.Plan) error {
	var err error
	switch p.format {
	case output.JSON, output.YAML:
		err = p.format.Write(p.Data, made)
	case markdown:
		err = p.markdown(made)
	default:
		err = p.text(made)
	}
	if err == nil && !made.Empty() {
		return &exit.Error{Code: exit.Differences, Err: exit.ErrSaid}
	}
	return err
}

// make makes the plan of a folder or commit.
func (p *command) make(ctx context.Context, arg string) (*plan.Plan, error) {
	return p.withScratch(func(c client.Client, scratch string) (*plan.Plan, error) {
		commit, err := take(ctx, arg, scratch)
		if err != nil {
			return nil, err
		}
		p.root = commit.root
		repository, err := p.find(ctx, c, commit)
		if err != nil {
			return nil, err
		}
		if p.preview != "" {
			return p.planner(c, scratch).PlanPreview(ctx, repository, commit.Commit, p.preview)
		}
		return p.planner(c, scratch).Plan(ctx, repository, commit.Commit, p.only)
	})
}
