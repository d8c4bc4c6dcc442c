package read

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/objects"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/delivery/few"
)

// describe shows one object on one page.
type describe struct {
	*call.Call
	of   target.Object
	page *output.Page
}

// Describe returns the command describe.
func Describe(c *call.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "describe [KIND] NAME",
		Short: "Show an app, project, tenant, policy, registry, pricelist, cluster or repository on one page, and what to do",
		Long: `Show an app, project, tenant, policy, registry, pricelist, cluster or repository on one page: where it is declared, what runs, each step from Git
to the pods in order, what is wrong with its objects, the last deliveries and events, and what to do next. Of a policy, it shows the rules
and the tenants that are under it; of a project, its host names and the rules that hold in it.`,
		Example: `  # An app of the project shop of the tenant acme
  kubeop describe acme/shop/web

  # The repository of a tenant, with the problems of its last commit
  kubeop describe repository acme`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.Kinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := c.Object(args)
			if err != nil {
				return err
			}
			d := &describe{Call: c, of: of, page: c.Page()}
			return d.run(cmd.Context())
		},
	}
}

// lastEvents and lastDeliveries bound what a page shows.
const (
	lastEvents     = 10
	lastDeliveries = 3
)

func (d *describe) run(ctx context.Context) error {
	if d.of.Kind.Name == v1alpha1.AppKind {
		return d.app(ctx)
	}
	reader, err := d.Client()
	if err != nil {
		return err
	}
	object, err := d.Get(ctx, reader, d.of)
	if err != nil {
		return err
	}
	d.head(object)
	switch o := object.(type) {
	case *v1alpha1.Project:
		d.page.Field("Namespace", o.Status.Namespace)
		d.page.Field("Apps ready", o.Status.AppsReady)
		d.steps(o.Status.Conditions)
		d.refused(o.Status.Refused)
		d.list("Last promotions", promotions(o.Status.Promoted))
		if err := describeGuardrails(ctx, d.page, reader, o.Status.Namespace); err != nil {
			return err
		}
	case *v1alpha1.Tenant:
		d.tenant(o)
	case *v1alpha1.Policy:
		if err := describePolicy(ctx, d.page, reader, o); err != nil {
			return err
		}
	case *v1alpha1.Registry:
		d.page.Field("Host", o.Spec.Host)
		d.page.Field("Mirror", o.Spec.Mirror)
		d.page.Field("Tenants", strings.Join(o.Spec.Tenants, ", "))
		d.page.Field("Policies", strings.Join(o.Spec.Policies, ", "))
		d.page.Field("Projects", fmt.Sprint(o.Status.Projects))
		d.steps(o.Status.Conditions)
	case *v1alpha1.PriceList:
		describePrices(d.page, o)
	case *v1alpha1.Cluster:
		d.page.Field("Default", fmt.Sprint(o.Spec.Default))
		d.page.Field("Server", o.Spec.Server)
		d.page.Field("Description", o.Spec.Description)
	case *v1alpha1.Repository:
		d.repository(o)
	}
	d.held(object)
	return d.end(ctx, reader, object, nil)
}

// tenant describes a tenant.
func (d *describe) tenant(o *v1alpha1.Tenant) {
	d.page.Field("Namespace", o.Status.Namespace)
	d.page.Field("Policies", strings.Join(o.Spec.Policies, ", "))
	d.page.Field("Projects", fmt.Sprint(o.Status.Projects))
	if o.Status.Budget != nil {
		d.page.Field("Budget", o.Status.Budget.Summary)
	}
	d.page.Field("Apps ready", o.Status.AppsReady)
	d.steps(o.Status.Conditions)
	d.list("Guards", guardLines(o.Status.Guards))
}

// repository describes a repository.
func (d *describe) repository(o *v1alpha1.Repository) {
	d.page.Field("URL", o.Spec.URL)
	d.page.Field("Cluster", o.Status.Cluster)
	if n := o.Status.ProjectsElsewhere; n > 0 {
		d.page.Field("On other clusters", few.Count(n, "project"))
	}
	d.page.Field("Newest commit", few.ShortRevision(o.Status.LastAttemptedRevision))
	d.page.Field("Held", few.ShortRevision(o.Status.HeldRevision))
	d.page.Field("Applied", few.ShortRevision(o.Status.LastAppliedRevision))
	d.steps(o.Status.Conditions)
	d.list("Problems of the newest commit", o.Status.Problems)
	d.list("Previews", previews(o.Status.Previews))
	d.list("Plans of pull requests", plans(o.Status.Plans))
}

// held lists what waits for a confirmation.
func (d *describe) held(object client.Object) {
	for _, held := range target.AllHeld(d.of, object) {
		d.list(held.What+" that wait for a confirmation", held.Lines)
	}
}

// app describes an app.
func (d *describe) app(ctx context.Context) error {
	_, app, reader, err := appOf(ctx, d.Call, []string{d.of.Ref.Path()})
	if err != nil {
		return err
	}
	nodes, err := reader.Of(ctx, app)
	if err != nil {
		return err
	}
	d.head(app)
	d.page.Field("Type", string(app.Spec.Type))
	describeOrigin(d.page, app)
	d.page.Field("Runs", few.ShortRevision(app.Status.LastAppliedRevision))
	if app.Status.LastAttemptedRevision != app.Status.LastAppliedRevision {
		d.page.Field("Tried", few.ShortRevision(app.Status.LastAttemptedRevision))
	}
	if release := app.Status.Release; release != nil {
		d.page.Field("Release", fmt.Sprintf("%s, revision %d, %s, chart %s", release.Name, release.Revision, release.Status, release.Chart))
	}
	describeImage(d.page, app.Status.Image)
	d.page.Field("URL", app.Status.URL)
	d.steps(app.Status.Conditions)
	d.refused(app.Status.Refused)
	d.held(app)
	d.unhealthy(nodes, app)
	if len(app.Status.Deliveries) > 0 {
		d.page.Title("Last deliveries")
		d.page.Table(deliveries(d.Call, app.Status.Deliveries[:min(lastDeliveries, len(app.Status.Deliveries))], false))
	}
	return d.end(ctx, reader.Client, app, nodes)
}

// describePrices prints the author of these prices, and how many periods each meter has.
func describePrices(page *output.Page, list *v1alpha1.PriceList) {
	page.Field("Currency", list.Spec.Currency)
	page.Field("Default", fmt.Sprint(list.Spec.Default))
	page.Field("Author", list.Annotations[v1alpha1.AuthorAnnotation])
	for _, m := range list.Spec.Meters {
		page.Field(m.Name, fmt.Sprintf("per %s, %s", m.Unit, few.Count(len(m.Periods), "period")))
	}
}

// describeImage says what an image policy chose, and where it was written.
func describeImage(page *output.Page, image *v1alpha1.ImageStatus) {
	if image == nil {
		return
	}
	page.Field("Image", image.Reference)
	if w := image.Written; w != nil {
		page.Field("Written", cmp.Or(w.PullRequest, fmt.Sprintf("%s, by commit %.8s", w.Reference, w.Commit)))
	}
}

// describeOrigin says which file of which commit declares an app.
func describeOrigin(page *output.Page, app *v1alpha1.App) {
	folder := app.Annotations[v1alpha1.FolderAnnotation]
	if folder == "" {
		page.Field("Declared", "by no repository")
		return
	}
	page.Field("Declared in", path.Join(folder, "app.yaml"))
	page.Field("Branch", app.Annotations[v1alpha1.BranchAnnotation])
	page.Field("Commit", few.ShortRevision(app.Annotations[v1alpha1.RevisionAnnotation]))
	page.Field("Author", app.Annotations[v1alpha1.AuthorAnnotation])
}

func (d *describe) head(object client.Object) {
	d.page.Title("%s %s", d.of.Kind.Name, d.of.Ref.Path())
	if object.GetDeletionTimestamp() != nil {
		d.page.Field("Deleted", output.Age(d.Clock.Now(), object.GetDeletionTimestamp().Time)+" ago; it waits for what it created")
	}
	d.page.Field("Created", output.Age(d.Clock.Now(), object.GetCreationTimestamp().Time)+" ago")
}

// steps shows Ready, then the steps in the order in which kubeop takes them, then the other conditions.
func (d *describe) steps(of []metav1.Condition) {
	if ready := meta.FindStatusCondition(of, v1alpha1.ReadyCondition); ready != nil {
		d.page.Line("Ready", paintStatus(d.Paint, ready.Status, string(ready.Status))+" "+ready.Reason+" "+ready.Message)
	}
	d.page.Title("Steps")
	for _, name := range target.Steps(d.of.Kind) {
		if step := meta.FindStatusCondition(of, name); step != nil {
			d.condition(step)
		}
	}
	others := slices.DeleteFunc(slices.Clone(of), func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ReadyCondition || slices.Contains(target.Steps(d.of.Kind), c.Type)
	})
	if len(others) > 0 {
		d.page.Title("Also")
		for i := range others {
			d.condition(&others[i])
		}
	}
}

func (d *describe) condition(c *metav1.Condition) {
	status := paintStatus(d.Paint, c.Status, string(c.Status))
	if slices.Contains(target.Abnormal, c.Type) {
		status = d.Paint.Yellow(string(c.Status))
	}
	message := strings.TrimPrefix(c.Message, c.Reason)
	d.page.Line(c.Type, status, output.Age(d.Clock.Now(), c.LastTransitionTime.Time), c.Reason, strings.TrimSpace(message))
}

func (d *describe) refused(refused *v1alpha1.Refused) {
	if refused == nil {
		return
	}
	d.page.Title("A newer version is refused")
	d.page.Field("Commit", few.ShortRevision(refused.Revision))
	d.page.Field("Place", refused.Place)
	d.page.Field("Problem", refused.Problem)
}

func (d *describe) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	d.page.Title("%s", title)
	for _, line := range lines {
		d.page.Line(line)
	}
}

// unhealthy shows the objects that are not healthy, the deepest cause only.
func (d *describe) unhealthy(nodes []*objects.Node, app *v1alpha1.App) {
	d.page.Title("Objects")
	causes := 0
	var walk func([]*objects.Node) bool
	walk = func(nodes []*objects.Node) bool {
		found := false
		for _, node := range nodes {
			deeper := walk(node.Children)
			if !deeper && (node.State == objects.Unhealthy || node.State == objects.Missing) {
				d.page.Line(node.Kind+"/"+node.Name, d.Paint.Red(string(node.State)), node.Why)
				causes++
				deeper = true
			}
			found = found || deeper
		}
		return found
	}
	walk(nodes)
	if causes == 0 {
		d.page.Line(fmt.Sprintf("%d, none unhealthy", len(app.Status.Inventory.Entries)))
	}
}

// end shows the events and what to do.
func (d *describe) end(ctx context.Context, reader client.Client, object client.Object, nodes []*objects.Node) error {
	found, err := events(ctx, reader, object, nodes)
	switch {
	case apierrors.IsForbidden(err):
		d.page.Title("Last events")
		d.page.Line("Your role does not show them: events of a cluster-scoped object are in the namespace default.")
	case err != nil:
		return err
	case len(found) > 0:
		d.page.Title("Last events")
		d.page.Table(eventTable(d.Call, found[max(0, len(found)-lastEvents):]))
	}
	if next := target.Next(d.of, object); len(next) > 0 {
		d.page.Title("What to do")
		for _, line := range next {
			d.page.Line(line)
		}
	}
	return d.page.End()
}
