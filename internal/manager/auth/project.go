package auth

import (
	"context"
	"errors"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/store"
)

// JWTPrefix begins the ID of a caller with a JWT of a project, which distinguishes it from the ID of a token.
const JWTPrefix = "jwt:"

// ofProject returns the holder of a JWT of a project. It needs no store.
func (a *Authenticator) ofProject(text string) (Caller, *problem.Problem) {
	claims, err := a.Projects.Verify(text)
	switch {
	case errors.Is(err, signing.ErrExpired):
		return Caller{}, problem.New(problem.Unauthenticated, "The JWT expired.")
	case err != nil:
		return Caller{}, problem.New(problem.Unauthenticated, invalidJWT)
	}
	scope, err := access.ParseScope(claims.Scope)
	if err != nil || scope.Project == "" {
		return Caller{}, problem.New(problem.Unauthenticated, "The scope of the JWT is unknown to this version.")
	}
	held := store.Token{
		ID: JWTPrefix + claims.ID, Name: claims.Name, Scopes: []string{claims.Scope}, Tenant: scope.Tenant, Created: claims.IssuedAt.Time().UTC(), Expires: claims.Expiry.Time().UTC(),
	}
	again := func(context.Context) *problem.Problem {
		_, refused := a.ofProject(text)
		return refused
	}
	// All JWTs of a project share one rate limit, so a new JWT allows no more requests.
	return Caller{Token: held, Grant: access.Grant{scope}, again: again, share: JWTPrefix + scope.Tenant + "/" + scope.Project}, nil
}
