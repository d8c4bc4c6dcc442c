// Package tokens has the operations about tokens, and the operation that gives the first administrator a token.
package tokens

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	// The bodies are small, and the operation with the code needs no token.
	const maxBody = 16 << 10
	op := func(id, method, path, summary string, status int, errs ...int) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, DefaultStatus: status, Tags: []string{"Tokens"}, Security: auth.Required, MaxBodyBytes: maxBody,
			Errors: problem.Statuses(append(errs, http.StatusForbidden)...)}
	}
	huma.Register(api, op("getCaller", http.MethodGet, "/v1/caller", "The token of this request", http.StatusOK), o.caller)
	huma.Register(api, op("listTokens", http.MethodGet, "/v1/tokens", "The tokens that the caller may see, by id", http.StatusOK, http.StatusBadRequest), o.list)
	huma.Register(api, op("createToken", http.MethodPost, "/v1/tokens", "A new token, which is shown once", http.StatusCreated, http.StatusConflict), o.create)
	huma.Register(api, op("revokeToken", http.MethodDelete, "/v1/tokens/{id}", "Revoke a token at once", http.StatusNoContent, http.StatusNotFound), o.revoke)
	jwt := op("createJWT", http.MethodPost, "/v1/projects/{tenant}/{project}/jwt", "A JWT for a project, which is valid for a short time and needs no store", http.StatusCreated, http.StatusNotFound)
	jwt.Description = "It may be used at the manager like a token, or be verified by others with the keys at /.well-known/jwks.json. It cannot be revoked by itself."
	huma.Register(api, jwt, o.createJWT)
	keys := op("listJWTKeys", http.MethodGet, "/.well-known/jwks.json", "The public keys that verify JWTs of projects (RFC 7517)", http.StatusOK)
	keys.Security, keys.Errors = nil, []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusGatewayTimeout}
	huma.Register(api, keys, o.keys)
	setup := op("claimSetup", http.MethodPost, "/v1/setup", "The token of the first administrator, for the code that the manager printed", http.StatusCreated, http.StatusConflict)
	setup.Security = nil
	huma.Register(api, setup, o.claim)
}
