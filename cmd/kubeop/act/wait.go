package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// Wait returns the command wait.
func Wait(c *call.Call) *cobra.Command {
	var timeout time.Duration
	var commit string
	command := &cobra.Command{
		Use:   "wait [KIND] NAME",
		Short: "Wait until an object is ready, for scripts and CI",
		Long: `Wait until an object is ready in its current version, and show what it waits for. It ends at once with exit code 1 if only a change can help,
such as a new commit, and with exit code 3 if the object is not ready in time.

With --commit, wait first until the repository that declares the object has applied this commit, or a later one that contains it: that is known in a
clone that has both. If the commit's version of the object is refused, it ends at once with the reason. A tenant without a repository of its own is
declared by that of the platform, which only administrators and the accounts that they allow can read.

With --server, it follows a tenant, project or app through a manager. It knows no commits.`,
		Example: `  # In CI, after git push
  kubeop wait acme/shop/web --commit "$(git rev-parse HEAD)"

  # Until the files of a commit are applied
  kubeop wait repository acme --timeout 1m`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.Reconciled...),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := c.Object(args)
			if err != nil {
				return err
			}
			return wait(cmd.Context(), c, of, commit, timeout)
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait; then the exit code is 3")
	command.Flags().StringVar(&commit, "commit", "", "hash of a commit that must be applied first")
	return command
}

func wait(ctx context.Context, c *call.Call, of target.Object, commit string, timeout time.Duration) error {
	deadline, over := c.Clock.Now().Add(timeout), check(settled)
	if commit != "" {
		if len(commit) < 7 {
			return fmt.Errorf("the hash %q is too short: give at least 7 digits", commit)
		}
		repository, err := c.RepositoryOf(ctx, of)
		if err != nil {
			return err
		}
		if err := follow(ctx, c, repository, timeout, applied(ctx, commit)); err != nil {
			return err
		}
		over = settledOrRefused
	}
	if err := follow(ctx, c, of, max(deadline.Sub(c.Clock.Now()), time.Second), over); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.Out, "The %s is ready.\n", of)
	return err
}

// settledOrRefused is settled for the version of a commit: an app or a project whose newest version is refused does not get it.
func settledOrRefused(o state) (bool, error) {
	var refused *v1alpha1.Refused
	switch object := o.(type) {
	case *v1alpha1.App:
		refused = object.Status.Refused
	case *v1alpha1.Project:
		refused = object.Status.Refused
	}
	if refused != nil {
		return false, fmt.Errorf("the newest version is refused: %s: %s", refused.Place, refused.Problem)
	}
	return settled(o)
}

// applied is over when a repository has applied a commit, or a later one. Files that are invalid do not keep the others from that.
func applied(ctx context.Context, commit string) check {
	first := ""
	return func(s state) (bool, error) {
		repository, ok := s.(*v1alpha1.Repository)
		if !ok {
			return false, errors.New("it is not a repository")
		}
		now := repository.Status.LastAttemptedRevision
		if first == "" {
			first = now
		}
		switch {
		case isCommit(now, commit) || contains(ctx, now, commit):
			if conditions.IsTrue(s, v1alpha1.StalledCondition) && !conditions.IsTrue(s, v1alpha1.SyncedCondition) {
				return false, errors.New(progress(s))
			}
			return conditions.IsTrue(s, v1alpha1.SyncedCondition), nil
		case now != first:
			return false, fmt.Errorf("the repository went on to %s, and whether that contains %s is not known here: wait for it instead, or run this in a clone that has both", now, commit)
		}
		return false, nil
	}
}

// contains reports whether a revision contains a commit, as far as the clone in the current folder knows.
func contains(ctx context.Context, revision, commit string) bool {
	_, hash, ok := strings.Cut(revision, ":")
	if !ok || !git.Within(".") {
		return false
	}
	_, err := git.Run(ctx, ".", "merge-base", "--is-ancestor", commit, hash)
	return err == nil
}

// isCommit reports whether a revision "branch@sha1:<commit>" is a commit with this hash, or with one that begins so.
func isCommit(revision, commit string) bool {
	_, hash, ok := strings.Cut(revision, ":")
	return ok && strings.HasPrefix(hash, commit)
}
