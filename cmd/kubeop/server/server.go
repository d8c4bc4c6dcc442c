// Package server reads through the management API what other commands read from the cluster: the tenants, projects and apps that a token may see.
package server

import (
	"context"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/internal/config"
)

// source implements target.Source with the answers of a manager.
type source struct {
	api   *client.Client
	url   string
	clock clock.Clock

	mu sync.Mutex
	// definitions are those of the kinds that were read, by their names.
	definitions map[string]*apiextensionsv1.CustomResourceDefinition
}

// New returns the source that settings name.
func New(of config.CommandLine, clock clock.Clock) (target.Source, error) {
	api, _, err := open(of)
	if err != nil {
		return nil, err
	}
	return &source{api: api, url: of.Server, clock: clock, definitions: map[string]*apiextensionsv1.CustomResourceDefinition{}}, nil
}

// Get implements target.Source.
func (s *source) Get(ctx context.Context, of target.Object) (kube.Object, error) {
	object, err := s.get(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", of, s.explained(err))
	}
	return object, nil
}

func (s *source) get(ctx context.Context, of target.Object) (kube.Object, error) {
	switch of.Kind.Name {
	case v1alpha1.TenantKind:
		return objectOf(of.Ref.Tenant, tenantOf)(s.api.GetTenant(ctx, of.Ref.Tenant, client.GetTenantParams{}))
	case v1alpha1.ProjectKind:
		return objectOf(of.Ref.Project, projectOf)(s.api.GetProject(ctx, of.Ref.Tenant, of.Ref.Project, client.GetProjectParams{}))
	case v1alpha1.AppKind:
		return objectOf(of.Ref.App, appOf)(s.api.GetApp(ctx, of.Ref.Tenant, of.Ref.Project, of.Ref.App, client.GetAppParams{}))
	}
	return nil, s.unserved(of.Kind)
}

// objectOf reads an answer about one object.
func objectOf[T any](name string, convert func(T) kube.Object) func(*client.Answer[T], error) (kube.Object, error) {
	return func(answer *client.Answer[T], err error) (kube.Object, error) {
		if err != nil {
			return nil, err
		}
		object := convert(answer.Body)
		if object.GetName() != name {
			return nil, fmt.Errorf("it answers about %q", object.GetName())
		}
		return object, nil
	}
}

// unserved is the error for kinds that the management API does not serve.
func (s *source) unserved(kind target.Kind) error {
	return &target.Explained{Text: fmt.Sprintf("the management API at %s does not serve %s: leave out --server, and unset KUBEOP_SERVER, to read the cluster", s.url, kind.Plural)}
}

// List implements target.Source.
func (s *source) List(ctx context.Context, of target.Kind, namespace string) ([]kube.Object, error) {
	return s.selected(ctx, target.Selection{Kind: of, Namespace: namespace})
}

func (s *source) selected(ctx context.Context, of target.Selection) ([]kube.Object, error) {
	all, err := s.list(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("listing the %s: %w", of.Kind.Plural, s.explained(err))
	}
	return all, nil
}

// list also reads the projects of all tenants, and the apps of all projects, list by list.
func (s *source) list(ctx context.Context, of target.Selection) ([]kube.Object, error) {
	switch {
	case of.Name != "":
		object, err := s.get(ctx, objectNamed(of))
		return []kube.Object{object}, err
	case of.Kind.Name == v1alpha1.TenantKind:
		return s.tenants(ctx)
	case of.Kind.Name != v1alpha1.ProjectKind && of.Kind.Name != v1alpha1.AppKind:
		return nil, s.unserved(of.Kind)
	case of.Namespace != "":
		tenant, project := placeOf(of)
		if of.Kind.Name == v1alpha1.ProjectKind {
			return s.projects(ctx, tenant)
		}
		return s.apps(ctx, tenant, project)
	}
	tenants, err := s.tenants(ctx)
	if err != nil {
		return nil, err
	}
	var all []kube.Object
	for _, tenant := range tenants {
		projects, err := s.projects(ctx, tenant.GetName())
		if err != nil {
			return nil, err
		}
		if of.Kind.Name == v1alpha1.ProjectKind {
			all = append(all, projects...)
			continue
		}
		for _, project := range projects {
			apps, err := s.apps(ctx, tenant.GetName(), project.GetName())
			if err != nil {
				return nil, err
			}
			all = append(all, apps...)
		}
	}
	return all, nil
}

// perPage is how many items are asked for at once, which is as many as the manager answers.
const perPage = 500

func (s *source) tenants(ctx context.Context) ([]kube.Object, error) {
	return client.All(func(cursor string) ([]kube.Object, string, error) {
		answer, err := s.api.ListTenants(ctx, client.ListTenantsParams{Limit: perPage, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return converted(answer.Body.Items, tenantOf), answer.Body.Next, nil
	})
}

func (s *source) projects(ctx context.Context, tenant string) ([]kube.Object, error) {
	return client.All(func(cursor string) ([]kube.Object, string, error) {
		answer, err := s.api.ListProjects(ctx, tenant, client.ListProjectsParams{Limit: perPage, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return converted(answer.Body.Items, projectOf), answer.Body.Next, nil
	})
}

func (s *source) apps(ctx context.Context, tenant, project string) ([]kube.Object, error) {
	return client.All(func(cursor string) ([]kube.Object, string, error) {
		answer, err := s.api.ListApps(ctx, tenant, project, client.ListAppsParams{Limit: perPage, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return converted(answer.Body.Items, appOf), answer.Body.Next, nil
	})
}

func converted[T any](items []T, convert func(T) kube.Object) []kube.Object {
	all := make([]kube.Object, len(items))
	for i, item := range items {
		all[i] = convert(item)
	}
	return all
}

// Table implements target.Source.
func (s *source) Table(ctx context.Context, of target.Selection) (*metav1.Table, error) {
	objects, err := s.selected(ctx, of)
	if err != nil {
		return nil, err
	}
	columns, err := s.columnsOf(of.Kind)
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{ColumnDefinitions: columns.Headers}
	for _, object := range objects {
		row, err := columns.Row(object, s.clock.Now())
		if err != nil {
			return nil, err
		}
		table.Rows = append(table.Rows, row)
	}
	return table, nil
}
