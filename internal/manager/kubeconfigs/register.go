package kubeconfigs

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	const maxBody = 16 << 10
	op := func(id, method, path, summary string, status int, errs ...int) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, DefaultStatus: status, Tags: []string{"Kubeconfigs"}, Security: auth.Required, MaxBodyBytes: maxBody,
			Errors: problem.Statuses(errs...)}
	}
	const all, one = "/v1/projects/{tenant}/{project}/kubeconfigs", "/v1/projects/{tenant}/{project}/kubeconfigs/{id}"
	create := op("createKubeconfig", http.MethodPost, all, "A kubeconfig for a project, with a token that is valid for a short time", http.StatusCreated, http.StatusForbidden, http.StatusNotFound, http.StatusConflict)
	create.Description = "The token is that of a service account of the project with the role. It is shown only here. A DELETE of the kubeconfig revokes it."
	huma.Register(api, create, o.create)
	renew := op("renewKubeconfig", http.MethodPost, one+"/token", "The next token of a kubeconfig that has not ended", http.StatusCreated, http.StatusForbidden, http.StatusNotFound, http.StatusConflict)
	renew.Description = "Only who got the kubeconfig gets it, and only with the right to get a new one."
	huma.Register(api, renew, o.renew)
	huma.Register(api, op("listKubeconfigs", http.MethodGet, all, "The kubeconfigs of a project, by id, until they end: those of the caller, for its administrators those of all", http.StatusOK, http.StatusBadRequest, http.StatusNotFound), o.list)
	huma.Register(api, op("deleteKubeconfig", http.MethodDelete, one, "Revoke all tokens of a kubeconfig", http.StatusNoContent, http.StatusNotFound, http.StatusConflict), o.remove)
	file := op("getKubeconfig", http.MethodGet, "/v1/kubeconfig", "One kubeconfig with a context for each project of the caller, without a token: the program kubeop gets them", http.StatusOK, http.StatusBadRequest, http.StatusConflict)
	huma.Register(api, file, o.file)
}
