// Package tokens has the operations about tokens, and the one by which the first administrator gets one.
package tokens

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	op := func(id, method, path, summary string, status int, errs ...int) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, DefaultStatus: status, Tags: []string{"Tokens"}, Security: auth.Required,
			Errors: problem.Statuses(append(errs, http.StatusForbidden)...)}
	}
	huma.Register(api, op("getCaller", http.MethodGet, "/v1/caller", "The token of this request", http.StatusOK), o.caller)
	huma.Register(api, op("listTokens", http.MethodGet, "/v1/tokens", "The tokens that the caller may see, by id", http.StatusOK, http.StatusBadRequest), o.list)
	huma.Register(api, op("createToken", http.MethodPost, "/v1/tokens", "A new token, which is shown once", http.StatusCreated, http.StatusConflict), o.create)
	huma.Register(api, op("revokeToken", http.MethodDelete, "/v1/tokens/{id}", "Revoke a token at once", http.StatusNoContent, http.StatusNotFound), o.revoke)
	setup := op("claimSetup", http.MethodPost, "/v1/setup", "The token of the first administrator, for the code that the manager printed", http.StatusCreated, http.StatusConflict)
	setup.Security = nil
	huma.Register(api, setup, o.claim)
}
