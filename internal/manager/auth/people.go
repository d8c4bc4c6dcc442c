package auth

import (
	"context"
	"errors"
	"slices"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/oidc"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// UserPrefix begins the ID of a person, which distinguishes it from the ID of a token.
const UserPrefix = "user:"

// ofPerson returns the person to whom an ID token was issued. It needs no store.
func (a *Authenticator) ofPerson(ctx context.Context, issuer, text string) (Caller, *problem.Problem) {
	who, err := a.Issuers.Verify(ctx, issuer, text)
	switch {
	case errors.Is(err, oidc.ErrUnavailable):
		return Caller{}, problem.New(problem.Unavailable, "The issuer of the ID token does not answer, so the manager cannot verify the token.")
	case errors.Is(err, oidc.ErrExpired):
		return Caller{}, problem.New(problem.Unauthenticated, "The ID token expired.")
	case err != nil:
		return Caller{}, problem.New(problem.Unauthenticated, invalidJWT)
	}
	grant, err := a.Owners.Grant(ctx, who.User, who.Groups)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("Answering that the rights of a person are not known", "why", err.Error())
		return Caller{}, problem.New(problem.Unavailable, "The manager does not follow the cluster, whose Tenants have their owners.")
	}
	held := store.Token{ID: UserPrefix + who.User, Name: who.User, Scopes: []string{}, Created: who.Issued, Expires: who.Expires}
	for _, scope := range grant {
		held.Scopes = append(held.Scopes, scope.String())
	}
	if tenant, one := grant.Tenant(); one {
		held.Tenant = tenant
	}
	again := func(ctx context.Context) *problem.Problem {
		now, refused := a.ofPerson(ctx, issuer, text)
		if refused == nil && !slices.Equal(now.Grant, grant) {
			return problem.New(problem.Unauthenticated, "The rights of the caller changed. Connect again.")
		}
		return refused
	}
	return Caller{Token: held, Grant: grant, again: again, email: who.Email, groups: who.Groups}, nil
}

// Share names the group of callers that share a part of the memory of the manager: the tenant of the caller, or "" for administrators. A caller with
// no tenant, or with several, is a group of its own.
func (c Caller) Share() string {
	if c.Token.Tenant == "" && !slices.ContainsFunc(c.Grant, func(s access.Scope) bool { return s.Role == access.Admin }) {
		return c.Token.ID
	}
	return c.Token.Tenant
}

// Groups returns the groups that the issuer says a person is in, nil for programs.
func (c Caller) Groups() []string { return c.groups }

// Author returns the name and the address of the caller, as the author of a commit.
func (c Caller) Author() (name, email string) {
	if c.email != "" {
		return c.Token.Name, c.email
	}
	return c.Token.Name, c.Token.ID + "@token.kubeop"
}

// Place returns the tenant of a list: the named one or, if none is named, the only tenant of the caller. For an administrator who names none it is "",
// which means all tenants.
func (c Caller) Place(named string, resource access.Resource) (string, *problem.Problem) {
	tenant, one := c.Grant.Tenant()
	switch {
	case named != "":
		tenant = named
	case len(c.Grant) > 0 && !one:
		return "", problem.New(problem.Invalid, "The caller has rights in several tenants.", problem.Fault{Location: "query.tenant", Message: "has to name one of them"})
	}
	if !c.Grant.May(resource, access.Read, tenant, "") {
		return "", problem.New(problem.Forbidden, "")
	}
	return tenant, nil
}
