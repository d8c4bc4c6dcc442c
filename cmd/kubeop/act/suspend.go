package act

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// Suspend returns the command suspend.
func Suspend(c *call.Call) *cobra.Command {
	var duration time.Duration
	command := &cobra.Command{
		Use:   "suspend [KIND] NAME",
		Short: "Leave an app or a repository alone for some time",
		Long: `Leave an app or a repository alone for some time: changes by hand stay, and pushes wait. It ends by itself. To suspend without an end, set
spec.suspend in Git.`,
		Example: `  # For an hour
  kubeop suspend acme/shop/web

  # Let no push of the tenant in for a day
  kubeop suspend repository acme --for 24h`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.App, target.Repository),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := suspendable(c, args)
			if err != nil {
				return err
			}
			if duration <= 0 {
				return fmt.Errorf("--for must be more than zero")
			}
			until := c.Clock.Now().Add(duration).UTC().Format(time.RFC3339)
			if err := annotate(cmd.Context(), c, of, map[string]any{v1alpha1.SuspendAnnotation: until}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "The %s is suspended until %s. `kubeop resume %s` ends it.\n", of, until, of.Args())
			return err
		},
	}
	command.Flags().DurationVar(&duration, "for", time.Hour, "for how long")
	return command
}

// Resume returns the command resume.
func Resume(c *call.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [KIND] NAME",
		Short: "Continue to reconcile an app or a repository that was suspended",
		Long: `Continue to reconcile an app or a repository that the command suspend suspended. What spec.suspend in Git suspends continues when that is
removed from Git.`,
		Example: `  # Continue now
  kubeop resume acme/shop/web

  # Let pushes in again
  kubeop resume repository acme`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.App, target.Repository),
		RunE:              func(cmd *cobra.Command, args []string) error { return resume(cmd.Context(), c, args) },
	}
}

func resume(ctx context.Context, c *call.Call, args []string) error {
	of, err := suspendable(c, args)
	if err != nil {
		return err
	}
	object, err := c.Read(ctx, of)
	if err != nil {
		return err
	}
	if suspendedInGit(object) {
		return fmt.Errorf("spec.suspend of the %s is true: remove it from Git", of)
	}
	if object.GetAnnotations()[v1alpha1.SuspendAnnotation] == "" {
		_, err := fmt.Fprintf(c.Out, "The %s is not suspended.\n", of)
		return err
	}
	if err := annotate(ctx, c, of, map[string]any{v1alpha1.SuspendAnnotation: nil}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "The %s continues.\n", of)
	return err
}

func suspendedInGit(object any) bool {
	switch o := object.(type) {
	case *v1alpha1.App:
		return o.Spec.Suspend
	case *v1alpha1.Repository:
		return o.Spec.Suspend
	}
	return false
}

func suspendable(c *call.Call, args []string) (target.Object, error) {
	of, err := c.Object(args)
	if err == nil && of.Kind.Name != v1alpha1.AppKind && of.Kind.Name != v1alpha1.RepositoryKind {
		err = fmt.Errorf("a %s cannot be suspended, only an app or a repository", of.Kind.Singular())
	}
	return of, err
}
