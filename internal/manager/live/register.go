package live

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/eventstream"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	huma.Register(api, list[Tenant](api, "listTenants", "/v1/tenants", "The tenants that the caller may see, by name", "Tenants"), o.tenants)
	huma.Register(api, get[Tenant](api, "getTenant", "/v1/tenants/{tenant}", "A tenant", "Tenants"), o.tenant)
	huma.Register(api, list[Project](api, "listProjects", "/v1/projects/{tenant}", "The projects of a tenant that the caller may see, by name", "Projects"), o.projects)
	huma.Register(api, get[Project](api, "getProject", "/v1/projects/{tenant}/{project}", "A project", "Projects"), o.project)
	huma.Register(api, list[App](api, "listApps", "/v1/apps/{tenant}/{project}", "The apps of a project, by name", "Apps"), o.apps)
	huma.Register(api, get[App](api, "getApp", "/v1/apps/{tenant}/{project}/{app}", "An app", "Apps"), o.app)
}

func list[T any](api huma.API, id, path, summary, tag string) huma.Operation {
	o := read[page.List[T]](api, huma.Operation{OperationID: id, Path: path, Summary: summary, Tags: []string{tag}, Errors: problem.Statuses(http.StatusBadRequest)})
	o.Description = "With watch=true the answer is a stream of server-sent events. put and delete are changes, and have an id to go on after; the data is an item, of delete only its name. " +
		"resync says that all items follow, and that what the client has may be gone; synced, that these were all; end, with a problem, that the caller may not read on."
	o.Responses["200"].Content[eventstream.ContentType] = eventstream.Response()
	return o
}

func get[T any](api huma.API, id, path, summary, tag string) huma.Operation {
	o := read[T](api, huma.Operation{OperationID: id, Path: path, Summary: summary, Tags: []string{tag}, Errors: problem.Statuses()})
	o.Responses["304"] = &huma.Response{Description: "The caller has the answer already, see If-None-Match."}
	return o
}

// read completes the description of an operation that reads: what all have in common, and the schema of the body, which huma cannot derive because the
// body is encoded beforehand.
func read[Body any](api huma.API, o huma.Operation) huma.Operation {
	o.Method, o.Security = http.MethodGet, auth.Required
	if strings.Contains(o.Path, "{") {
		o.Errors = append(o.Errors, http.StatusNotFound)
	}
	body := &huma.MediaType{Schema: api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Body](), true, "")}
	o.Responses = map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{"application/json": body}}}
	return o
}
