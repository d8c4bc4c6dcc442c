package act

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// request is a command that sets an annotation with the time as its value, and waits until kubeop has handled it, or a later value that a
// push hook or another person set over it.
type request struct {
	*call.Call
	name, done string
	annotation string
	// handled returns the last handled value of the annotation.
	handled func(state) string

	wait    bool
	timeout time.Duration
}

// Reconcile returns the command reconcile.
func Reconcile(c *call.Call) *cobra.Command {
	r := &request{Call: c, name: "reconcile", annotation: meta.ReconcileRequestAnnotation, done: "reconciled", handled: func(s state) string {
		return s.GetReconcileStatus().GetLastHandledReconcileRequest()
	}}
	command := &cobra.Command{
		Use:   "reconcile [KIND] NAME",
		Short: "Have kubeop look at an object now: a repository is fetched, an app compared",
		Long: `Have kubeop look at an object now. A repository is fetched, and its newest commit applied. An app is compared with its source and delivered if
something differs. The command waits until that is done and the object is ready.`,
		Example: `  # Fetch the repository of a tenant, without waiting for its poll
  kubeop reconcile repository acme

  # Compare an app with Git
  kubeop reconcile acme/shop/web`,
		ValidArgsFunction: c.CompleteObject(target.Reconciled...),
	}
	return r.command(command)
}

// Force returns the command force.
func Force(c *call.Call) *cobra.Command {
	r := &request{Call: c, name: "force", annotation: meta.ForceRequestAnnotation, done: "tried again", handled: func(s state) string {
		if app, ok := s.(*v1alpha1.App); ok {
			return app.Status.LastHandledForceAt
		}
		return ""
	}}
	return r.command(&cobra.Command{
		Use:   "force APP",
		Short: "Try again what failed and is held, with the same input",
		Long: `Try again what failed and is held: the same commit, chart and values. For a Helm app this is one more upgrade, with its hooks and tests. Use it
when what made it fail was outside of the app and is mended.`,
		Example: `  # Once more
  kubeop force acme/shop/web

  # Do not wait for the result
  kubeop force acme/shop/web --wait=false`,
		ValidArgsFunction: c.CompleteObject(target.App),
	})
}

// Reset returns the command reset.
func Reset(c *call.Call) *cobra.Command {
	r := &request{Call: c, name: "reset", annotation: v1alpha1.ResetAnnotation, done: "reset", handled: func(s state) string {
		if app, ok := s.(*v1alpha1.App); ok {
			return app.Status.LastHandledResetAt
		}
		return ""
	}}
	return r.command(&cobra.Command{
		Use:   "reset APP",
		Short: "Forget the failures of an app, so that all its retries are available again",
		Long: `Forget the failures of an app, so that all its retries are available again, and try at once. Unlike force, it does not repeat an upgrade that
succeeded.`,
		Example: `  # Begin to count from zero
  kubeop reset acme/shop/web

  # In the project of the current namespace
  kubeop reset web`,
		ValidArgsFunction: c.CompleteObject(target.App),
	})
}

func (r *request) command(command *cobra.Command) *cobra.Command {
	command.Args = cobra.RangeArgs(1, 2)
	command.RunE = func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) }
	command.Flags().BoolVar(&r.wait, "wait", true, "wait until it is done and the object is ready")
	command.Flags().DurationVar(&r.timeout, "timeout", 5*time.Minute, "how long to wait; then the exit code is 3")
	return command
}

func (r *request) run(ctx context.Context, args []string) error {
	of, err := r.Object(args)
	if err != nil {
		return err
	}
	if r.annotation != meta.ReconcileRequestAnnotation && of.Kind.Name != v1alpha1.AppKind {
		return fmt.Errorf("%s is for apps, not for a %s", r.name, of.Kind.Singular())
	}
	if err := r.notSuspended(ctx, of); err != nil {
		return err
	}
	value := r.Clock.Now().UTC().Format(time.RFC3339Nano)
	if err := annotate(ctx, r.Call, of, map[string]any{r.annotation: value}); err != nil {
		return err
	}
	if !r.wait {
		return r.say("The %s will be %s.", of, r.done)
	}
	err = follow(ctx, r.Call, of, r.timeout, func(s state) (bool, error) {
		if handled := r.handled(s); handled != value && handled != s.GetAnnotations()[r.annotation] {
			return false, nil
		}
		return settled(s)
	})
	if err != nil {
		return err
	}
	return r.say("The %s was %s and is ready.", of, r.done)
}

// notSuspended is an error for an object that is suspended: kubeop handles no request of it.
func (r *request) notSuspended(ctx context.Context, of target.Object) error {
	object, err := r.Read(ctx, of)
	if err != nil {
		return err
	}
	o, ok := object.(state)
	if !ok {
		return fmt.Errorf("nothing is to be done for a %s: it holds from when it is written", of.Kind.Singular())
	}
	if conditions.IsTrue(o, v1alpha1.SuspendedCondition) {
		return fmt.Errorf("the %s is suspended, so kubeop handles no request of it: `kubeop resume %s` ends that", of, of.Args())
	}
	return nil
}

func (r *request) say(format string, args ...any) error {
	_, err := fmt.Fprintf(r.Out, format+"\n", args...)
	return err
}

// annotate sets annotations of an object; a value of nil removes one.
func annotate(ctx context.Context, c *call.Call, of target.Object, annotations map[string]any) error {
	writer, err := c.Client()
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("annotating the %s: %w", of, err)
	}
	object := of.Kind.New()
	object.SetNamespace(of.Key().Namespace)
	object.SetName(of.Key().Name)
	if err := writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("annotating the %s: %w", of, err)
	}
	return nil
}
