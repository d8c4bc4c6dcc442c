package live

import (
	"context"
	"math"
	"time"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/etag"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/streams"
	"github.com/kubeop/kubeop/internal/store"
)

// Operations are the operations of this package.
type Operations struct {
	Index *index.Index
	// Measured is the name under which the usage of the cluster is measured, "" if it is not.
	Measured string
	// Synced returns an error until the cluster was read.
	Synced func(context.Context) error

	streams streams.Count
}

type (
	tenantInput struct {
		Tenant string `path:"tenant" maxLength:"63"`
		etag.Known
	}
	projectInput struct {
		Tenant  string `path:"tenant" maxLength:"63"`
		Project string `path:"project" maxLength:"63"`
		etag.Known
	}
	appInput struct {
		Tenant  string `path:"tenant" maxLength:"63"`
		Project string `path:"project" maxLength:"63"`
		App     string `path:"app" maxLength:"63"`
		etag.Known
	}
	tenantsInput  struct{ ListQuery }
	projectsInput struct {
		Tenant string `path:"tenant" maxLength:"63"`
		ListQuery
	}
	appsInput struct {
		Tenant  string `path:"tenant" maxLength:"63"`
		Project string `path:"project" maxLength:"63"`
		ListQuery
	}
)

// ListQuery has the parameters of all lists of this package.
type ListQuery struct {
	page.Query
	Watch       bool   `query:"watch" doc:"Answer a stream of events: all items, and then each change. It goes on until the client or the manager ends it."`
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"With watch: the last id of a stream that ended. The new one goes on after it if the manager still has what changed since, and begins with all items if not."`
}

// view is the part of a list that a caller may see.
type view struct {
	list string
	may  func(name string) bool
}

func (o *Operations) tenants(ctx context.Context, in *tenantsInput) (*answer, error) {
	return o.list(ctx, in.ListQuery, o.viewTenants)
}

func (o *Operations) viewTenants(ctx context.Context) (view, error) {
	list, grant := allTenants, auth.Of(ctx).Grant
	if tenant, _ := grant.Tenant(); tenant != "" {
		list = tenantsOf(tenant)
	}
	return view{list, func(name string) bool { return grant.May(access.Tenants, access.Read, name, "") }}, o.ready(ctx)
}

func (o *Operations) tenant(ctx context.Context, in *tenantInput) (*one, error) {
	if !auth.Of(ctx).Grant.May(access.Tenants, access.Read, in.Tenant, "") {
		return nil, problem.New(problem.NotFound, "")
	}
	t, err := o.get(ctx, allTenants, in.Tenant)
	if err != nil {
		return nil, err
	}
	return answerOf(in.Known, t), nil
}

func (o *Operations) projects(ctx context.Context, in *projectsInput) (*answer, error) {
	return o.list(ctx, in.ListQuery, in.view(o))
}

// view shows callers the projects that they may read. A caller who may see none of a tenant does not learn that the tenant exists.
func (in *projectsInput) view(o *Operations) func(context.Context) (view, error) {
	return func(ctx context.Context) (view, error) {
		grant := auth.Of(ctx).Grant
		if !grant.Knows(in.Tenant) {
			return view{}, problem.New(problem.NotFound, "")
		}
		_, err := o.get(ctx, allTenants, in.Tenant)
		return view{projectsOf(in.Tenant), func(name string) bool { return grant.May(access.Projects, access.Read, in.Tenant, name) }}, err
	}
}

func (o *Operations) project(ctx context.Context, in *projectInput) (*one, error) {
	p, err := o.projectNamed(ctx, access.Projects, in.Tenant, in.Project)
	if err != nil {
		return nil, err
	}
	return answerOf(in.Known, p), nil
}

func (o *Operations) apps(ctx context.Context, in *appsInput) (*answer, error) {
	return o.list(ctx, in.ListQuery, in.view(o))
}

func (in *appsInput) view(o *Operations) func(context.Context) (view, error) {
	return func(ctx context.Context) (view, error) {
		_, err := o.projectNamed(ctx, access.Apps, in.Tenant, in.Project)
		return view{appsOf(in.Tenant, in.Project), func(string) bool { return true }}, err
	}
}

func (o *Operations) app(ctx context.Context, in *appInput) (*one, error) {
	if _, err := o.projectNamed(ctx, access.Apps, in.Tenant, in.Project); err != nil {
		return nil, err
	}
	a, err := o.get(ctx, appsOf(in.Tenant, in.Project), in.App)
	if err != nil {
		return nil, err
	}
	return answerOf(in.Known, a), nil
}

// list answers with a page of what the caller may see, or with a stream of it.
func (o *Operations) list(ctx context.Context, q ListQuery, of func(context.Context) (view, error)) (*answer, error) {
	v, err := of(ctx)
	if err != nil {
		return nil, err
	}
	after, err := q.Key()
	switch {
	case err != nil:
		return nil, err
	case q.Watch && after != "":
		return nil, problem.New(problem.BadRequest, "A stream has no pages.", problem.Fault{Location: "query.cursor", Message: "is not for watch"})
	case q.Watch:
		return o.watch(ctx, q.LastEventID, of, v)
	}
	return pageOf(q.Query, o.Index.Page(v.list, after, q.Limit+1, v.may)), nil
}

// projectNamed returns a project if the caller may read a resource of it. The tenant has to exist too, otherwise there is no such project.
func (o *Operations) projectNamed(ctx context.Context, resource access.Resource, tenant, name string) (*index.Item, error) {
	if !auth.Of(ctx).Grant.May(resource, access.Read, tenant, name) {
		return nil, problem.New(problem.NotFound, "")
	}
	if _, err := o.get(ctx, allTenants, tenant); err != nil {
		return nil, err
	}
	return o.get(ctx, projectsOf(tenant), name)
}

// Tenant returns nil if the tenant exists, and otherwise the answer to the request.
func (o *Operations) Tenant(ctx context.Context, name string) error {
	_, err := o.get(ctx, allTenants, name)
	return err
}

// TenantRef returns the tenant that has a name now, and what to answer if there is none.
func (o *Operations) TenantRef(ctx context.Context, name string) (store.TenantRef, error) {
	t, err := o.get(ctx, allTenants, name)
	if err != nil {
		return store.TenantRef{}, err
	}
	return store.TenantRef{Name: name, UID: t.UID, Created: t.Created}, nil
}

// Project returns nil if the project exists and the caller may read it, and otherwise the answer to the request.
func (o *Operations) Project(ctx context.Context, tenant, name string) error {
	_, err := o.projectNamed(ctx, access.Projects, tenant, name)
	return err
}

// TenantNames returns the names of all tenants, whoever asks.
func (o *Operations) TenantNames(ctx context.Context) ([]string, error) {
	return o.names(ctx, allTenants, func(*index.Item) bool { return true })
}

// ProjectNames returns the names of the projects of a tenant that are not being deleted, whoever asks.
func (o *Operations) ProjectNames(ctx context.Context, tenant string) ([]string, error) {
	return o.names(ctx, projectsOf(tenant), func(project *index.Item) bool { return !project.Deleting })
}

func (o *Operations) names(ctx context.Context, list string, of func(*index.Item) bool) (all []string, err error) {
	if err := o.ready(ctx); err != nil {
		return nil, err
	}
	for _, item := range o.Index.Page(list, "", math.MaxInt, func(string) bool { return true }) {
		if of(item) {
			all = append(all, item.Name)
		}
	}
	return all, nil
}

// Logs returns nil if the caller may read the logs of the app, and otherwise the answer to the request.
func (o *Operations) Logs(ctx context.Context, tenant, project, app string) error {
	if _, err := o.projectNamed(ctx, access.Logs, tenant, project); err != nil {
		return err
	}
	_, err := o.get(ctx, appsOf(tenant, project), app)
	return err
}

// Read returns nil once the cluster was read, and otherwise the answer to the request.
func (o *Operations) Read(ctx context.Context) error { return o.ready(ctx) }

func (o *Operations) get(ctx context.Context, list, name string) (*index.Item, error) {
	if err := o.ready(ctx); err != nil {
		return nil, err
	}
	item := o.Index.Get(list, name)
	if item == nil {
		return nil, problem.New(problem.NotFound, "")
	}
	return item, nil
}

// ready refuses requests until the cluster was read: before that, existing objects would seem not to exist.
func (o *Operations) ready(ctx context.Context) error {
	if err := o.Synced(ctx); err != nil {
		logr.FromContextOrDiscard(ctx).Info("Answering that the caches are not filled", "why", err.Error())
		return problem.New(problem.Unavailable, "The manager has not read the cluster yet.").After(5 * time.Second)
	}
	return nil
}
