package read

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/objects"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// Events returns the command events.
func Events(c *call.Call) *cobra.Command {
	var format output.Format
	command := &cobra.Command{
		Use:   "events [KIND] NAME",
		Short: "Show the events of an object; of an app, also those of its objects and pods",
		Long: `Show the events of an app, project, tenant, policy, registry or repository, the oldest first. For an app, these include the events of the
objects that it delivered, of the Jobs of its hooks, and of their pods. Kubernetes keeps events for an hour, unless an administrator changed that.`,
		Example: `  # What happened to an app
  kubeop events acme/shop/web

  # Which commits a project delivered
  kubeop events project acme/shop`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.Kinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := eventsOf(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			if format.ForPrograms() {
				return format.Write(c.Data, found)
			}
			if len(found) == 0 {
				_, err := fmt.Fprintln(c.Err, "There are no events.")
				return err
			}
			columns := eventTable(c, found)
			return columns.Write(c.Out, "")
		},
	}
	format.AddFlag(command, output.Table, output.JSON, output.YAML)
	return command
}

func eventsOf(ctx context.Context, c *call.Call, args []string) ([]corev1.Event, error) {
	of, err := c.Object(args)
	if err != nil {
		return nil, err
	}
	if of.Kind.Name == v1alpha1.AppKind {
		_, app, reader, err := appOf(ctx, c, args[len(args)-1:])
		if err != nil {
			return nil, err
		}
		nodes, err := reader.Of(ctx, app)
		if err != nil {
			return nil, err
		}
		return events(ctx, reader.Client, app, nodes)
	}
	reader, err := c.Client()
	if err != nil {
		return nil, err
	}
	object, err := c.Get(ctx, reader, of)
	if err != nil {
		return nil, err
	}
	found, err := events(ctx, reader, object, nil)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("your role does not show events of a %s, which are in the namespace default; `kubeop describe %s` shows its conditions", of.Kind.Singular(), of.Args())
	}
	return found, err
}

// events returns the events of an object and of the nodes, the oldest first. Events of cluster-scoped objects are in the namespace default.
func events(ctx context.Context, reader client.Reader, object client.Object, nodes []*objects.Node) ([]corev1.Event, error) {
	of := map[types.UID]bool{object.GetUID(): true}
	namespaces := map[string]bool{cmp.Or(object.GetNamespace(), corev1.NamespaceDefault): true}
	var add func([]*objects.Node)
	add = func(nodes []*objects.Node) {
		for _, node := range nodes {
			if node.UID != "" {
				of[node.UID], namespaces[cmp.Or(node.Namespace, corev1.NamespaceDefault)] = true, true
			}
			add(node.Children)
		}
	}
	add(nodes)
	found := []corev1.Event{}
	for namespace := range namespaces {
		list := &corev1.EventList{}
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing events: %w", err)
		}
		for i := range list.Items {
			if of[list.Items[i].InvolvedObject.UID] {
				found = append(found, list.Items[i])
			}
		}
	}
	slices.SortStableFunc(found, func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b)) })
	return found, nil
}

// lastSeen is when an event happened last, in whichever of its fields the reporter wrote it.
func lastSeen(e *corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	last := e.CreationTimestamp.Time
	for _, at := range []time.Time{e.EventTime.Time, e.LastTimestamp.Time} {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// eventTable returns a table of events.
func eventTable(c *call.Call, of []corev1.Event) *output.Columns {
	columns := &output.Columns{}
	columns.Add("AGE", "TYPE", "REASON", "OBJECT", "MESSAGE")
	for i := range of {
		e := &of[i]
		kind, times := e.Type, max(e.Count, 1)
		if e.Series != nil {
			times = max(times, e.Series.Count)
		}
		if e.Type == corev1.EventTypeWarning {
			kind = c.Paint.Red(kind)
		}
		message := strings.Join(strings.Fields(e.Message), " ")
		if times > 1 {
			message += fmt.Sprintf(" (%d times)", times)
		}
		columns.Add(output.Age(c.Clock.Now(), lastSeen(e)), kind, e.Reason, e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name, message)
	}
	return columns
}
