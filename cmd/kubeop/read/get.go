// Package read has the commands that show what is in a cluster. The rights of the role view are enough for them, except for the
// events of a cluster-scoped object.
package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/identity"
)

// get lists objects.
type get struct {
	*call.Call
	format output.Format
	watch  bool

	kind   target.Kind
	of     []target.Selection
	source target.Source
}

// Get returns the command get.
func Get(c *call.Call) *cobra.Command {
	g := &get{Call: c}
	command := &cobra.Command{
		Use:   "get KIND [NAME...]",
		Short: "List apps, projects, tenants, policies, registries, pricelists, clusters or repositories",
		Long: `List apps, projects, tenants, policies, registries, pricelists, clusters or repositories, with the columns of kubectl get.

Without names, it lists the objects of the tenant and project that --tenant, --project or the namespace name: with a tenant alone, the apps of all its
projects. Only administrators can list the objects of all tenants. With --watch, projects that are created later are
not followed.

With --server, it reads tenants, projects and apps through a manager: what the token may see, without those of the platform itself, and not as
JSON or YAML.`,
		Example: `  # The apps of all projects of a tenant
  kubeop get apps --tenant acme

  # The same through a manager, without a kubeconfig
  KUBEOP_TOKEN_FILE=token kubeop get apps --tenant acme --server https://kubeop.example.com

  # Follow the apps of one project
  kubeop get apps -t acme -p shop --watch`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.CompleteKindThenNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return g.run(cmd.Context(), args) },
	}
	g.format.AddFlag(command, output.Table, output.Wide, output.JSON, output.YAML)
	command.Flags().BoolVarP(&g.watch, "watch", "w", false, "after listing, print each object that changes, until interrupted")
	command.Flags().BoolVarP(&g.All, "all-tenants", "A", false, "list the objects of all tenants")
	return command
}

func (g *get) run(ctx context.Context, args []string) error {
	var err error
	if g.kind, err = target.KindOf(args[0]); err != nil {
		return err
	}
	if g.All && len(args) > 1 {
		return errors.New("--all-tenants lists everything, so it takes no names")
	}
	if g.watch && g.format.ForPrograms() {
		return fmt.Errorf("--watch prints rows, so it is not for -o %s", g.format)
	}
	if g.source, err = g.Source(); err != nil {
		return err
	}
	if g.of, err = g.selections(ctx, args[1:]); err != nil {
		return err
	}
	if g.format.ForPrograms() {
		return g.objects(ctx, len(args) == 2)
	}
	return g.list(ctx)
}

// selections returns what the names and flags select.
func (g *get) selections(ctx context.Context, names []string) ([]target.Selection, error) {
	var of []target.Selection
	for _, name := range names {
		object, err := g.Named(g.kind, name)
		if err != nil {
			return nil, err
		}
		of = append(of, target.Selection{Kind: g.kind, Namespace: object.Key().Namespace, Name: object.Key().Name})
	}
	if of != nil {
		return of, nil
	}
	all := target.Selection{Kind: g.kind}
	within := g.Within()
	if g.All || within.Tenant == "" {
		return []target.Selection{all}, nil
	}
	switch g.kind.Name {
	case v1alpha1.AppKind:
		return g.projects(ctx, within)
	case v1alpha1.ProjectKind:
		all.Namespace = v1alpha1.HomeNamespace(within.Tenant)
	case v1alpha1.TenantKind, v1alpha1.RepositoryKind:
		// The namespace of the kubeconfig does not keep administrators from listing all.
		if g.Tenant != "" {
			all.Name = g.Tenant
		}
	}
	return []target.Selection{all}, nil
}

// projects selects the apps of one project, or of all projects of a tenant.
func (g *get) projects(ctx context.Context, within identity.Ref) ([]target.Selection, error) {
	if within.Project != "" {
		return []target.Selection{{Kind: g.kind, Namespace: v1alpha1.ProjectNamespace(within.Tenant, within.Project)}}, nil
	}
	projects, err := g.source.List(ctx, target.Project, v1alpha1.HomeNamespace(within.Tenant))
	if err != nil {
		return nil, err
	}
	var of []target.Selection
	for _, project := range projects {
		of = append(of, target.Selection{Kind: g.kind, Namespace: v1alpha1.ProjectNamespace(within.Tenant, project.GetName())})
	}
	return of, nil
}

// list prints rows.
func (g *get) list(ctx context.Context) error {
	rows := newRows(g.kind, g.format == output.Wide, len(g.of) > 1 || len(g.of) == 1 && g.of[0].Namespace == "", g.Paint)
	read := make([]*metav1.Table, len(g.of))
	for i, of := range g.of {
		var err error
		if read[i], err = g.source.Table(ctx, of); err != nil {
			return err
		}
		rows.add(read[i])
	}
	if len(g.of) == 0 || rows.columns.Empty() && !g.watch {
		_, err := fmt.Fprintf(g.Err, "There are no %s%s.\n", g.kind.Plural, g.place())
		return err
	}
	if err := rows.write(g.Out); err != nil || !g.watch {
		return err
	}
	return g.follow(ctx, rows, read)
}

// place says where the objects were looked for.
func (g *get) place() string {
	within := g.Within()
	switch {
	case g.All || within.Tenant == "" || len(g.kind.Path) == 1:
		return ""
	case g.kind.Name == v1alpha1.AppKind && within.Project != "":
		return fmt.Sprintf(" in the project %s of the tenant %s", within.Project, within.Tenant)
	}
	return " of the tenant " + within.Tenant
}

// follow prints rows that change, until it is interrupted.
func (g *get) follow(ctx context.Context, rows *rows, read []*metav1.Table) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, failed := make(chan *metav1.Table), make(chan error)
	for i, of := range g.of {
		go func() { failed <- g.followOne(ctx, of, read[i], changes) }()
	}
	for {
		select {
		case table := <-changes:
			rows.add(table)
			if err := rows.write(g.Out); err != nil {
				return err
			}
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// followOne sends the rows of a selection that change. When the source ends, which an API server does every few minutes, the selection is read again, so that no change
// is missed.
func (g *get) followOne(ctx context.Context, of target.Selection, read *metav1.Table, changes chan<- *metav1.Table) error {
	send := func(table *metav1.Table) {
		select {
		case changes <- table:
		case <-ctx.Done():
		}
	}
	for {
		err := g.source.FollowTable(ctx, of, read, func(row metav1.TableRow, deleted bool) {
			if deleted && len(row.Cells) > 0 {
				row.Cells = slices.Clone(row.Cells)
				row.Cells[0] = fmt.Sprintf("%v (deleted)", row.Cells[0])
			}
			send(&metav1.Table{Rows: []metav1.TableRow{row}})
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-g.Clock.After(time.Second):
		case <-ctx.Done():
			return nil
		}
		if read, err = g.source.Table(ctx, of); err != nil {
			return err
		}
		send(read)
	}
}

// objects prints the objects themselves; the only one without a list.
func (g *get) objects(ctx context.Context, one bool) error {
	reader, err := g.Client()
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, of := range g.of {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(of.Kind.Name + "List"))
		options := []client.ListOption{client.InNamespace(of.Namespace)}
		if of.Name == "" {
			if err := reader.List(ctx, found, options...); err != nil {
				return fmt.Errorf("listing the %s: %w", of.Kind.Plural, err)
			}
			list.Items = append(list.Items, found.Items...)
			continue
		}
		object := unstructured.Unstructured{}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(of.Kind.Name))
		if err := reader.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, &object); err != nil {
			return fmt.Errorf("reading the %s %s: %w", of.Kind.Singular(), of.Name, err)
		}
		list.Items = append(list.Items, object)
	}
	if one {
		return g.format.Write(g.Data, &list.Items[0])
	}
	return g.format.Write(g.Data, list)
}
