package read

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/delivery/few"
)

// History returns the command history.
func History(c *call.Call) *cobra.Command {
	var format output.Format
	command := &cobra.Command{
		Use:   "history APP",
		Short: "Show the last ten deliveries of an app",
		Long: `Show the last ten deliveries of an app, the newest first: which commit of whom was delivered, when, how long it took, and how it ended. For a
Helm app also the revision of its release. With --server the manager answers it.`,
		Example: `  # What was delivered, and by whom
  kubeop history acme/shop/web

  # With full hashes and chosen images
  kubeop history acme/shop/web -o wide`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteObject(target.App),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, records, err := recordsOf(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			if format.ForPrograms() {
				return format.Write(c.Data, append([]v1alpha1.DeliveryRecord{}, records...))
			}
			if len(records) == 0 {
				_, err := fmt.Fprintf(c.Err, "The %s has no deliveries.\n", of)
				return err
			}
			columns := deliveries(c, records, format == output.Wide)
			return columns.Write(c.Out, "")
		},
	}
	format.AddFlag(command, output.Table, output.Wide, output.JSON, output.YAML)
	return command
}

// recordsOf returns the deliveries of the app that arguments name, from the manager or from the cluster.
func recordsOf(ctx context.Context, c *call.Call, args []string) (target.Object, []v1alpha1.DeliveryRecord, error) {
	manager, err := c.Through()
	switch {
	case err != nil:
		return target.Object{}, nil, err
	case manager != nil:
		return recordsThrough(ctx, c, manager, args)
	}
	of, app, _, err := appOf(ctx, c, args)
	if err != nil {
		return of, nil, err
	}
	return of, app.Status.Deliveries, nil
}

// deliveries returns a table of deliveries.
func deliveries(c *call.Call, of []v1alpha1.DeliveryRecord, wide bool) *output.Columns {
	columns := &output.Columns{}
	titles := []string{"REVISION", "AUTHOR", "STARTED", "TOOK", "RESULT"}
	if wide {
		titles = append(titles, "COMMIT", "RELEASE", "IMAGE")
	}
	columns.Add(titles...)
	for i := range of {
		d := &of[i]
		took := ""
		if d.Duration != nil {
			took = d.Duration.Duration.String()
		}
		cells := []string{few.ShortRevision(d.Revision), d.Author, output.Age(c.Clock.Now(), d.StartedAt.Time) + " ago", took, result(c.Paint, d)}
		if wide {
			release := ""
			if d.Release > 0 {
				release = strconv.Itoa(d.Release)
			}
			cells = append(cells, d.Commit, release, d.Image)
		}
		columns.Add(cells...)
	}
	return columns
}

func result(paint output.Paint, d *v1alpha1.DeliveryRecord) string {
	text := d.Result
	if d.Reason != "" {
		text += " (" + d.Reason + ")"
	}
	return paintStatus(paint, map[string]metav1.ConditionStatus{
		v1alpha1.DeliverySucceeded: metav1.ConditionTrue, v1alpha1.DeliveryFailed: metav1.ConditionFalse,
	}[d.Result], text)
}

// Blame returns the command blame.
func Blame(c *call.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "blame APP",
		Short: "Show which commit made an app not ready",
		Long: `Show which commit made an app not ready: the newer commit whose files were refused, the first delivery that failed after the last one that
succeeded, or that the app broke by itself after a delivery that succeeded.`,
		Example: `  # Who broke it
  kubeop blame acme/shop/web

  # The same in the project of the current namespace
  kubeop blame web`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteObject(target.App),
		RunE:              func(cmd *cobra.Command, args []string) error { return blame(cmd.Context(), c, args) },
	}
}

func blame(ctx context.Context, c *call.Call, args []string) error {
	of, app, _, err := appOf(ctx, c, args)
	if err != nil {
		return err
	}
	ready := condition(app.Status.Conditions, v1alpha1.ReadyCondition)
	page := c.Page()
	if refused := app.Status.Refused; refused != nil {
		page.Title("The newest version of the %s is refused", of)
		page.Field("Commit", few.ShortRevision(refused.Revision))
		page.Field("Place", refused.Place)
		page.Field("Problem", refused.Problem)
	}
	switch culprit, before := firstFailure(app.Status.Deliveries); {
	case ready.Status == metav1.ConditionTrue:
		page.Title("The %s is ready", of)
	case culprit == nil:
		page.Title("The %s is not ready", of)
		page.Field("Commit", "no delivery failed: the newest succeeded or is in progress")
	default:
		page.Title("The %s is not ready since a delivery failed", of)
		page.Field("Commit", few.ShortRevision(culprit.Revision))
		page.Field("Author", culprit.Author)
		page.Field("Started", output.Age(c.Clock.Now(), culprit.StartedAt.Time)+" ago")
		page.Field("Reason", culprit.Reason)
		if before != nil {
			page.Field("Before", few.ShortRevision(before.Revision)+" worked")
		}
	}
	if ready.Status != metav1.ConditionTrue {
		page.Field("Now", cmp.Or(ready.Reason+": "+ready.Message, "unknown"))
	}
	return page.End()
}

// firstFailure returns the first delivery that failed after the last one that succeeded, and that one. Deliveries are the newest first. It returns
// nil if the newest delivery succeeded, or nothing failed since.
func firstFailure(of []v1alpha1.DeliveryRecord) (failure, success *v1alpha1.DeliveryRecord) {
	for i := range of {
		switch of[i].Result {
		case v1alpha1.DeliveryFailed:
			failure = &of[i]
		case v1alpha1.DeliverySucceeded:
			return failure, &of[i]
		}
	}
	return failure, nil
}
