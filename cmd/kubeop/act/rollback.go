package act

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/rollback"
)

// rollingBack makes the commit that brings an app back.
type rollingBack struct {
	*call.Call
	push bool

	of     target.Object
	folder string
}

// Rollback returns the command rollback.
func Rollback(c *call.Call) *cobra.Command {
	r := &rollingBack{Call: c}
	command := &cobra.Command{
		Use:   "rollback APP [COMMIT]",
		Short: "Make the commit that brings an app back to an earlier one",
		Long: `Make the commit that brings an app back: it restores the app's folder as it was at an earlier commit, and nothing else. Without COMMIT, that is the
newest one that was delivered successfully, other than what is delivered now. If the newest commit is refused, what is delivered now counts, too.
Run it in a clone of the repository that declares the app.

--push makes the commit on the newest one of the branch at the server, and pushes it; the files of the clone stay as they are. If another commit has
changed the app since the one that the operator applied or refused, nothing is pushed.

With --server the manager makes the commit and pushes it, and no clone is needed: --push says that this is meant.

An app whose content is in another Git repository is brought back there, or by the ref in its app.yaml.`,
		Example: `  # Back to what worked, to be looked at and pushed
  kubeop rollback acme/shop/web && git show && git push

  # To a commit of kubeop history, at once
  kubeop rollback acme/shop/web 1a2b3c4d --push

  # Through a manager
  kubeop rollback acme/shop/web --push --server https://kubeop.example.com`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.App),
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	command.Flags().BoolVar(&r.push, "push", false, "push the commit to the upstream of the current branch, and leave the clone as it is")
	return command
}

func (r *rollingBack) run(ctx context.Context, args []string) error {
	var err error
	if r.of, err = r.Named(target.App, args[0]); err != nil {
		return err
	}
	manager, err := r.Through()
	switch {
	case err != nil:
		return err
	case manager != nil:
		return r.through(ctx, manager, append(args[1:], "")[0])
	}
	reader, err := r.Client()
	if err != nil {
		return err
	}
	app := &v1alpha1.App{}
	if err := reader.Get(ctx, r.of.Key(), app); err != nil {
		return fmt.Errorf("reading the %s: %w", r.of, err)
	}
	back, err := rollback.To(app, r.of.String(), append(args[1:], "")[0])
	if err != nil {
		return err
	}
	root, err := r.clone(ctx, app)
	if err != nil {
		return err
	}
	if r.push {
		return r.pushTo(ctx, root, back, rollback.Newest(app))
	}
	if err := r.restore(ctx, root, back); err != nil {
		return err
	}
	_, err = fmt.Fprintln(r.Out, "Look at it with `git show`, and push it.")
	return err
}

// clone returns the root of the clone, in which the app's folder has no changes.
func (r *rollingBack) clone(ctx context.Context, app *v1alpha1.App) (string, error) {
	if r.folder = app.Annotations[v1alpha1.FolderAnnotation]; r.folder == "" {
		return "", fmt.Errorf("no repository declares the %s", r.of)
	}
	root, err := git.Run(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", fmt.Errorf("run this in a clone of the repository that declares the %s: %w", r.of, err)
	}
	root = strings.TrimSuffix(root, "\n")
	// The repository is the right one if it has the commit that the operator applied.
	current := rollback.HashOf(app.Annotations[v1alpha1.RevisionAnnotation])
	if _, err := git.Run(ctx, root, "cat-file", "-e", current+"^{commit}"); err != nil {
		return "", fmt.Errorf("%s does not have the commit %s that declares the %s: it is another repository, or `git fetch` is needed", root, rollback.Short(current), r.of)
	}
	if changed, err := git.Run(ctx, root, "status", "--porcelain", "--", r.folder); err != nil {
		return "", err
	} else if changed != "" {
		return "", fmt.Errorf("%s has changes that are not committed; commit or stash them", path.Join(root, r.folder))
	}
	return root, nil
}

// pushTimeout bounds how long a commit is tried while others push.
const pushTimeout = 5 * time.Minute

// pushTo commits the folder as it was at a commit to the server. read is the newest commit of the app that the operator has read.
func (r *rollingBack) pushTo(ctx context.Context, root, back, read string) error {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	branch, _, err := git.Upstream(ctx, root)
	if err != nil {
		return err
	}
	tree, err := git.Line(ctx, root, "rev-parse", "--verify", "--quiet", back+":"+r.folder)
	if err != nil {
		return fmt.Errorf("commit %s does not have %s: %w", rollback.Short(back), r.folder, err)
	}
	if _, err := branch.Fetch(ctx); err != nil { // The clone may not have the commit yet.
		return err
	}
	seen, err := branch.Commit(ctx, read)
	if err != nil {
		return err
	}
	title, body := rollback.Message(r.of.Ref.Path(), r.folder, back)
	writer := &commit.Writer{Clock: r.Clock}
	done, err := writer.Write(ctx, branch, commit.Request{
		ID: uuid.NewString(), Title: title, Body: body, Base: seen.Root, Branch: branch.Branch, Edits: []commit.Edit{commit.Restore{Folder: r.folder, Tree: tree}},
	})
	switch {
	case err != nil:
		return err
	case done.Unchanged:
		return fmt.Errorf("%s is already as it was at %s in %s", r.folder, rollback.Short(back), branch.Name())
	}
	_, err = fmt.Fprintf(r.Out, "Committed %s to %s: %s is as it was at %s. `git pull` brings it into this clone.\n`kubeop wait %s --commit %s` waits for it.\n",
		rollback.Short(done.Hash), branch.Name(), r.folder, rollback.Short(back), r.of.Args(), done.Hash)
	return err
}

// restore commits the folder as it was at a commit.
func (r *rollingBack) restore(ctx context.Context, root, back string) error {
	if _, err := git.Run(ctx, root, "cat-file", "-e", back+":"+r.folder); err != nil {
		return fmt.Errorf("commit %s does not have %s: %w", rollback.Short(back), r.folder, err)
	}
	if _, err := git.Run(ctx, root, "restore", "--source="+back, "--staged", "--worktree", "--", r.folder); err != nil {
		return err
	}
	if changed, err := git.Run(ctx, root, "status", "--porcelain", "--", r.folder); err != nil {
		return err
	} else if changed == "" {
		return errors.New(r.folder + " is already as it was at " + rollback.Short(back))
	}
	title, body := rollback.Message(r.of.Ref.Path(), r.folder, back)
	if _, err := git.Run(ctx, root, "commit", "--quiet", "--message", title, "--message", body, "--", r.folder); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.Out, "Committed: %s is as it was at %s.\n", r.folder, rollback.Short(back))
	return err
}
