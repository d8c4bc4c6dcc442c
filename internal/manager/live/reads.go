package live

import (
	"context"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Operations are those of this package.
type Operations struct {
	// Cluster is read from caches, so its objects are shared, and never changed.
	Cluster client.Reader
	// Synced returns why the caches were not filled yet.
	Synced func(context.Context) error
}

type (
	tenantInput struct {
		Tenant string `path:"tenant" maxLength:"63"`
		Known
	}
	projectInput struct {
		Tenant  string `path:"tenant" maxLength:"63"`
		Project string `path:"project" maxLength:"63"`
		Known
	}
	appInput struct {
		Tenant  string `path:"tenant" maxLength:"63"`
		Project string `path:"project" maxLength:"63"`
		App     string `path:"app" maxLength:"63"`
		Known
	}
	projectsInput struct {
		Tenant string `path:"tenant" maxLength:"63"`
		page.Query
	}
	appsInput struct {
		Tenant  string `path:"tenant" maxLength:"63"`
		Project string `path:"project" maxLength:"63"`
		page.Query
	}
)

type listed[T any] struct{ Body page.List[T] }

func (o *Operations) tenants(ctx context.Context, q *page.Query) (*listed[Tenant], error) {
	var all v1alpha1.TenantList
	after, err := o.list(ctx, *q, &all, "")
	if err != nil {
		return nil, err
	}
	var found []Tenant
	for i := range all.Items {
		if t := &all.Items[i]; auth.Of(ctx).Grant.May(access.Tenants, access.Read, t.Name, "") {
			found = append(found, tenantOf(t))
		}
	}
	return pageOf(*q, after, found, func(t Tenant) string { return t.Name }), nil
}

func (o *Operations) tenant(ctx context.Context, in *tenantInput) (*one[Tenant], error) {
	if !auth.Of(ctx).Grant.May(access.Tenants, access.Read, in.Tenant, "") {
		return nil, problem.New(problem.NotFound, "")
	}
	t, err := o.tenantNamed(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	return answerOf(in.Known, t.ResourceVersion, tenantOf(t)), nil
}

// projects answers those that the caller may see. Who may see none of a tenant does not learn that it exists.
func (o *Operations) projects(ctx context.Context, in *projectsInput) (*listed[Project], error) {
	if !auth.Of(ctx).Grant.Knows(in.Tenant) {
		return nil, problem.New(problem.NotFound, "")
	}
	if _, err := o.tenantNamed(ctx, in.Tenant); err != nil {
		return nil, err
	}
	var all v1alpha1.ProjectList
	after, err := o.list(ctx, in.Query, &all, v1alpha1.HomeNamespace(in.Tenant))
	if err != nil {
		return nil, err
	}
	var found []Project
	for i := range all.Items {
		if p := &all.Items[i]; auth.Of(ctx).Grant.May(access.Projects, access.Read, in.Tenant, p.Name) {
			found = append(found, projectOf(in.Tenant, p))
		}
	}
	return pageOf(in.Query, after, found, func(p Project) string { return p.Name }), nil
}

func (o *Operations) project(ctx context.Context, in *projectInput) (*one[Project], error) {
	p, err := o.projectNamed(ctx, access.Projects, in.Tenant, in.Project)
	if err != nil {
		return nil, err
	}
	return answerOf(in.Known, p.ResourceVersion, projectOf(in.Tenant, p)), nil
}

func (o *Operations) apps(ctx context.Context, in *appsInput) (*listed[App], error) {
	if _, err := o.projectNamed(ctx, access.Apps, in.Tenant, in.Project); err != nil {
		return nil, err
	}
	var all v1alpha1.AppList
	after, err := o.list(ctx, in.Query, &all, v1alpha1.ProjectNamespace(in.Tenant, in.Project))
	if err != nil {
		return nil, err
	}
	var found []App
	for i := range all.Items {
		found = append(found, appOf(in.Tenant, in.Project, &all.Items[i]))
	}
	return pageOf(in.Query, after, found, func(a App) string { return a.Name }), nil
}

func (o *Operations) app(ctx context.Context, in *appInput) (*one[App], error) {
	if _, err := o.projectNamed(ctx, access.Apps, in.Tenant, in.Project); err != nil {
		return nil, err
	}
	a := &v1alpha1.App{}
	if err := o.get(ctx, client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(in.Tenant, in.Project), Name: in.App}, a); err != nil {
		return nil, err
	}
	return answerOf(in.Known, a.ResourceVersion, appOf(in.Tenant, in.Project, a)), nil
}

func (o *Operations) tenantNamed(ctx context.Context, name string) (*v1alpha1.Tenant, error) {
	t := &v1alpha1.Tenant{}
	return t, o.get(ctx, client.ObjectKey{Name: name}, t)
}

// projectNamed returns a project of which the caller may read a resource. It also reads the tenant: what looks like a project of one that does not exist,
// such as the platform's, is none.
func (o *Operations) projectNamed(ctx context.Context, resource access.Resource, tenant, name string) (*v1alpha1.Project, error) {
	if !auth.Of(ctx).Grant.May(resource, access.Read, tenant, name) {
		return nil, problem.New(problem.NotFound, "")
	}
	if _, err := o.tenantNamed(ctx, tenant); err != nil {
		return nil, err
	}
	p := &v1alpha1.Project{}
	return p, o.get(ctx, client.ObjectKey{Namespace: v1alpha1.HomeNamespace(tenant), Name: name}, p)
}

func (o *Operations) get(ctx context.Context, key client.ObjectKey, into client.Object) error {
	if err := o.ready(ctx); err != nil {
		return err
	}
	switch err := o.Cluster.Get(ctx, key, into, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return problem.New(problem.NotFound, "")
	case err != nil:
		return err
	}
	return nil
}

// ready refuses while the caches are empty: what is there would look as if it were not.
func (o *Operations) ready(ctx context.Context) error {
	if err := o.Synced(ctx); err != nil {
		logr.FromContextOrDiscard(ctx).Info("Answering that the caches are not filled", "why", err.Error())
		return huma.ErrorWithHeaders(problem.New(problem.Unavailable, "The manager has not read the cluster yet."), map[string][]string{"Retry-After": {"5"}})
	}
	return nil
}

// list reads all objects of a namespace, and returns the name after which the page begins.
func (o *Operations) list(ctx context.Context, q page.Query, into client.ObjectList, namespace string) (after string, err error) {
	if after, err = q.Key(); err != nil {
		return "", err
	}
	if err := o.ready(ctx); err != nil {
		return "", err
	}
	return after, o.Cluster.List(ctx, into, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
}

// pageOf returns the page after a name.
func pageOf[T any](q page.Query, after string, all []T, name func(T) string) *listed[T] {
	all = slices.DeleteFunc(all, func(item T) bool { return name(item) <= after })
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return &listed[T]{page.Of(q, all, name)}
}
