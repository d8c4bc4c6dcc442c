package plan

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
)

// comparison compares what a commit declares with what its Repository has declared.
type comparison struct {
	client     client.Reader
	direct     client.Reader
	limits     budget.Limits
	budgets    *usage.Budgets
	repository *v1alpha1.Repository
	commit     Commit
	reader     *tree.Reader
	tree       *tree.Tree
	// there are the live objects of the Repository that the commit may change or delete, and listed all of them, with previews.
	there  map[identity.Ref]client.Object
	listed []client.Object
	// apps are the Apps that the commit creates or changes, as the operator would apply them.
	apps []*v1alpha1.App
	// previews: the objects are those of previews, and what the commit itself declares is left out.
	previews bool
}

// compare reads the commit and compares it with the cluster.
func (p *Planner) compare(ctx context.Context, repository *v1alpha1.Repository, commit Commit) (*comparison, error) {
	reader, err := tree.NewReader()
	if err != nil {
		return nil, err
	}
	spec := repository.Spec
	reader.Platform = spec.Tenant == ""
	if spec.Tenant != "" {
		tenant := &v1alpha1.Tenant{}
		if err := p.Client.Get(ctx, client.ObjectKey{Name: spec.Tenant}, tenant); err != nil {
			return nil, fmt.Errorf("reading tenant %s: %w", spec.Tenant, err)
		}
		reader = reader.Within(p.Limits.With(&tenant.Spec.Limits))
	}
	cmp := &comparison{
		client: p.Client, direct: p.Direct, limits: p.Limits, budgets: p.budgets(), repository: repository, commit: commit, reader: reader,
		there: map[identity.Ref]client.Object{},
	}
	if err := cmp.live(ctx); err != nil {
		return nil, err
	}
	root, err := commit.Root.Sub(path.Join(".", spec.Path))
	if err != nil {
		return nil, fmt.Errorf("reading %s of the commit: %w", spec.Path, err)
	}
	reader.Domains = cmp.domains
	if reader.Placement, err = cmp.placement(ctx); err != nil {
		return nil, err
	}
	cmp.tree = reader.Read(files.Of(root), tree.Scope{Repository: repository.Name, Tenant: spec.Tenant, Path: spec.Path}, nil)
	if file, err := cmp.tree.Unread(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return cmp, nil
}

// placement is that of the operator. Until the operator has read the Repository, the projects of all clusters are planned.
func (c *comparison) placement(ctx context.Context) (tree.Placement, error) {
	own, name := c.repository.Status.Cluster, c.repository.Spec.Tenant
	if c.repository.Status.LastAttemptedRevision == "" {
		return tree.Placement{}, nil
	}
	clusters, tenant := &v1alpha1.ClusterList{}, &v1alpha1.Tenant{}
	if name != "" {
		if err := c.client.Get(ctx, client.ObjectKey{Name: name}, tenant); err != nil {
			return tree.Placement{}, fmt.Errorf("reading the clusters of tenant %s: %w", name, err)
		}
	}
	err := c.client.List(ctx, clusters)
	rules := declared.Clusters(clusters.Items)
	switch {
	case apierrors.IsForbidden(err) && name != "":
		// Owners of a tenant may not list Clusters. Their tenant is here, so it names this cluster, or names none and this is the default.
		if rules.Default = own; own != "" {
			rules.Clusters = slices.Compact(slices.Sorted(slices.Values(append([]string{own}, tenant.Spec.Clusters...))))
		}
	case err != nil && !meta.IsNoMatchError(err):
		return tree.Placement{}, fmt.Errorf("listing the clusters: %w", err)
	}
	live := func(ref identity.Ref) (client.Object, error) { return c.there[ref], nil }
	return tree.Placement{Cluster: &own, Rules: rules, Tenant: tenant.Spec.Clusters, Live: live}, nil
}

// domains returns those that each tenant has before the commit.
func (c *comparison) domains() (map[string][]string, error) {
	of := map[string][]string{}
	for ref, o := range c.there {
		if tenant, is := o.(*v1alpha1.Tenant); is {
			of[ref.Tenant] = tenant.Spec.Domains
		}
	}
	return of, nil
}

// live reads the objects that the Repository has declared. Who may list them in all namespaces reads them with few requests; owners of a tenant
// read them in each of its namespaces.
func (c *comparison) live(ctx context.Context) error {
	projects := &v1alpha1.ProjectList{}
	tenant, home := c.repository.Spec.Tenant, ""
	if tenant == "" {
		for _, of := range []client.ObjectList{&v1alpha1.PolicyList{}, &v1alpha1.RegistryList{}, &v1alpha1.PriceListList{}, &v1alpha1.ClusterList{}, &v1alpha1.TenantList{}} {
			if err := c.list(ctx, of, ""); err != nil {
				return err
			}
		}
	} else {
		home = v1alpha1.HomeNamespace(tenant)
	}
	if err := c.list(ctx, projects, home); err != nil {
		return err
	}
	err := c.list(ctx, &v1alpha1.AppList{}, "")
	if tenant == "" || !apierrors.IsForbidden(err) {
		return err
	}
	for i := range projects.Items {
		if err := c.list(ctx, &v1alpha1.AppList{}, v1alpha1.ProjectNamespace(tenant, projects.Items[i].Name)); err != nil {
			return err
		}
	}
	return nil
}

// list lists what the Repository has declared. there gets what kubeop has applied and what is not being deleted, without previews: other branches
// declare those.
func (c *comparison) list(ctx context.Context, of client.ObjectList, namespace string) error {
	err := c.client.List(ctx, of, client.MatchingLabels{v1alpha1.RepositoryLabel: c.repository.Name}, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("listing what repository %s declared: %w", c.repository.Name, err)
	}
	// The items of these lists are always objects, so the function returns no error.
	_ = meta.EachListItem(of, func(item runtime.Object) error {
		o, _ := item.(client.Object)
		ref, ours := identity.Of(o)
		if ours {
			c.listed = append(c.listed, o)
		}
		if ours && o.GetDeletionTimestamp() == nil && fieldmanager.Applied(o) && o.GetAnnotations()[v1alpha1.PreviewOfAnnotation] == "" {
			c.there[ref] = o
		}
		return nil
	})
	return nil
}

// changes returns what the commit changes of Policies, Registries, PriceLists, Tenants, Projects and Apps, and why deletions are held.
func (c *comparison) changes(ctx context.Context) (changes []Change, held []string, err error) {
	lost := map[identity.Ref]client.Object{}
	for ref, o := range c.there {
		if _, declared := c.tree.Find(ref); !declared && c.tree.Covers(ref) {
			lost[ref] = o
		}
	}
	losses, apps, err := declared.Losses(ctx, c.client, c.direct, lost)
	if err == nil {
		err = declared.CountUsers(ctx, c.direct, losses, lost, c.tree)
	}
	if err != nil {
		return nil, nil, err
	}
	verdict := plan.Commit{
		Revision: c.commit.Revision, Losses: losses, Apps: apps,
		Emptied: c.tree.Empty(), Foreign: c.foreign(), Misplaced: c.tree.Misplaced(),
	}.Weigh("")
	within := newAdmission(c)
	for _, loss := range verdict.Go {
		within.gone[loss.Ref] = true
	}
	c.tree.Walk(func(n tree.Node) bool {
		var change *Change
		if change, err = c.changed(ctx, n, within); change != nil {
			changes = append(changes, *change)
		}
		return err == nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, loss := range verdict.Go {
		changes = append(changes, Change{Action: Delete, Object: loss.Ref.String()})
	}
	for _, loss := range verdict.Held {
		changes = append(changes, Change{Action: Hold, Object: loss.Ref.String(), Why: verdict.Why})
	}
	return changes, verdict.Lines, nil
}

// foreign reports whether the commit declares none of the existing objects.
func (c *comparison) foreign() bool {
	for ref := range c.there {
		if _, declared := c.tree.Find(ref); declared || c.tree.Elsewhere(ref) != "" {
			return false
		}
	}
	return len(c.there) > 0
}

// changed compares one object; nil if the commit does not change it.
func (c *comparison) changed(ctx context.Context, n tree.Node, within *admission) (*Change, error) {
	if !n.Declared() || c.previews && c.tree.OriginOf(n.Ref()) == nil {
		return nil, nil
	}
	o, live := c.tree.Object(n, c.commit.Revision), c.there[n.Ref()]
	declared.NameAuthor(o, c.commit.Author)
	if live != nil {
		declared.KeepRevision(o, live)
		if same, err := declared.Same(o, live); same || err != nil {
			return nil, err
		}
	}
	want, err := c.reader.Default(o)
	if err != nil {
		return nil, err
	}
	refused, err := within.admit(ctx, n.Ref(), want)
	if err != nil {
		return nil, err
	}
	if refused != "" {
		return &Change{Action: Refuse, Object: n.Ref().String(), Why: refused}, nil
	}
	change := &Change{Action: Create, Object: n.Ref().String()}
	if change.Why, err = within.overBudget(ctx, want); err != nil {
		return nil, err
	}
	if live != nil {
		change.Action = Update
		if change.Fields, err = specFields(live, want); err != nil {
			return nil, err
		}
	}
	if app, ok := want.(*v1alpha1.App); ok {
		c.add(app, live)
	}
	return change, nil
}

// add adds an App that is applied, with the status of the live one.
func (c *comparison) add(app *v1alpha1.App, live client.Object) {
	if is, ok := live.(*v1alpha1.App); ok {
		app.UID, app.Generation, app.Status = is.UID, is.Generation+1, *is.Status.DeepCopy()
	}
	c.apps = append(c.apps, app)
}

// one returns an App of the commit, whether the commit changes it or not.
func (c *comparison) one(ref identity.Ref) (*v1alpha1.App, error) {
	n, there := c.tree.Find(ref)
	if !there || !n.Declared() {
		return nil, fmt.Errorf("the commit does not declare the app %s", ref.Path())
	}
	o, live := c.tree.Object(n, c.commit.Revision), c.there[ref]
	want, err := c.reader.Default(o)
	if err != nil {
		return nil, err
	}
	app, ok := want.(*v1alpha1.App)
	if !ok {
		return nil, errors.New(ref.Path() + " is no app")
	}
	c.add(app, live)
	return app, nil
}

// specFields returns the fields of the spec that change.
func specFields(live, want client.Object) ([]Field, error) {
	before, err := specOf(live)
	if err != nil {
		return nil, err
	}
	after, err := specOf(want)
	if err != nil {
		return nil, err
	}
	return fieldsOf(before, after, func(s string) string { return s }), nil
}

func specOf(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	return &unstructured.Unstructured{Object: map[string]any{"spec": content["spec"]}}, nil
}
