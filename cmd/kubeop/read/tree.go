package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/objects"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// tree shows what an app is made of.
type tree struct {
	*call.Call
	format output.Format
}

// Tree returns the command tree.
func Tree(c *call.Call) *cobra.Command {
	t := &tree{Call: c}
	command := &cobra.Command{
		Use:   "tree APP",
		Short: "Show the objects of an app, down to its pods, and why they are not healthy",
		Long: `Show the objects that an app delivered, the Jobs of its hooks, and what Kubernetes made of them, down to the pods, with their age and, for those that
are not healthy, the reason.`,
		Example: `  # What the app web of the project shop is made of
  kubeop tree acme/shop/web

  # The same for a program
  kubeop tree -t acme -p shop web -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteObject(target.App),
		RunE:              func(cmd *cobra.Command, args []string) error { return t.run(cmd.Context(), args) },
	}
	t.format.AddFlag(command, output.Table, output.JSON, output.YAML)
	return command
}

func (t *tree) run(ctx context.Context, args []string) error {
	of, app, reader, err := appOf(ctx, t.Call, args)
	if err != nil {
		return err
	}
	nodes, err := reader.Of(ctx, app)
	if err != nil {
		return err
	}
	if t.format.ForPrograms() {
		return t.format.Write(t.Data, nodes)
	}
	columns := &output.Columns{Gap: "  "}
	columns.Add(t.Paint.Bold(of.String()), t.ready(app), "", mainMessage(app))
	t.branches(columns, nodes, "")
	if err := columns.Write(t.Out, ""); err != nil || len(nodes) > 0 {
		return err
	}
	_, err = fmt.Fprintln(t.Err, "It has delivered nothing.")
	return err
}

// branches adds the nodes, each with its children below it.
func (t *tree) branches(columns *output.Columns, nodes []*objects.Node, indent string) {
	for i, node := range nodes {
		branch, below := "├─ ", "│  "
		if i == len(nodes)-1 {
			branch, below = "└─ ", "   "
		}
		columns.Add(t.Paint.Faint(indent+branch)+node.Kind+" "+node.Name, t.mark(node.State), t.age(node), node.Why)
		t.branches(columns, node.Children, indent+below)
	}
}

func (t *tree) age(node *objects.Node) string {
	created, err := time.Parse(time.RFC3339, node.Created)
	if err != nil {
		return "" // It was not read.
	}
	return output.Age(t.Clock.Now(), created)
}

func (t *tree) ready(app *v1alpha1.App) string {
	ready := condition(app.Status.Conditions, v1alpha1.ReadyCondition)
	return paintStatus(t.Paint, ready.Status, map[metav1.ConditionStatus]string{
		metav1.ConditionTrue: "Ready", metav1.ConditionFalse: "Not ready",
	}[ready.Status])
}

func (t *tree) mark(state objects.State) string {
	switch state {
	case objects.Healthy:
		return t.Paint.Green(string(state))
	case objects.Unknown:
		return t.Paint.Yellow(string(state))
	}
	return t.Paint.Red(string(state))
}

// mainMessage is the message of Ready, if there is something to say.
func mainMessage(app *v1alpha1.App) string {
	ready := condition(app.Status.Conditions, v1alpha1.ReadyCondition)
	if ready.Status == metav1.ConditionTrue {
		return ""
	}
	return strings.TrimSpace(ready.Message)
}
