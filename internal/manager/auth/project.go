package auth

import (
	"context"
	"errors"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/store"
)

// JWTPrefix begins the ID of a caller with a JWT of a project, so that it is told apart from those of tokens.
const JWTPrefix = "jwt:"

// ofProject returns who holds a JWT of a project. It needs no store.
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
	// A new JWT is no new share of what callers may send.
	return Caller{Token: held, Grant: access.Grant{scope}, again: again, share: JWTPrefix + scope.Tenant + "/" + scope.Project}, nil
}
