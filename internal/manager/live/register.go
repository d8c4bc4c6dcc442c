package live

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	op := func(id, path, summary, tag string, errs ...int) huma.Operation {
		return huma.Operation{
			OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{tag}, Security: auth.Required,
			Errors: append(errs, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable),
		}
	}
	huma.Register(api, op("listTenants", "/v1/tenants", "The tenants that the caller may see, by name", "Tenants", http.StatusBadRequest), o.tenants)
	huma.Register(api, op("getTenant", "/v1/tenants/{tenant}", "A tenant", "Tenants", http.StatusNotFound), o.tenant)
	huma.Register(api, op("listProjects", "/v1/projects/{tenant}", "The projects of a tenant that the caller may see, by name", "Projects", http.StatusBadRequest, http.StatusNotFound), o.projects)
	huma.Register(api, op("getProject", "/v1/projects/{tenant}/{project}", "A project", "Projects", http.StatusNotFound), o.project)
	huma.Register(api, op("listApps", "/v1/apps/{tenant}/{project}", "The apps of a project, by name", "Apps", http.StatusBadRequest, http.StatusNotFound), o.apps)
	huma.Register(api, op("getApp", "/v1/apps/{tenant}/{project}/{app}", "An app", "Apps", http.StatusNotFound), o.app)
}
