// Package auth finds out who sent a request. There is no way to turn it off.
package auth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/oidc"
	"github.com/kubeop/kubeop/internal/manager/owners"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/request"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
)

// scheme is the name of the security scheme in the OpenAPI document.
const scheme = "token"

// Required is the Security of an operation that only callers with a token may use.
var Required = []map[string][]string{{scheme: {}}}

// useEvery is the precision with which the last use of a token is recorded: a write for each request would cost more than the request.
const useEvery = time.Minute

// Caller is the sender of a request.
type Caller struct {
	Token store.Token
	Grant access.Grant
	again func(context.Context) *problem.Problem
	// email is empty for programs, and so are groups.
	email  string
	groups []string
	// share names the rate limit that the caller shares with others, "" if the caller has its own.
	share string
}

// Again checks the rights of the caller once more, while a long answer is sent. It returns a Problem if the caller may not read any more of it.
func (c Caller) Again(ctx context.Context) *problem.Problem {
	if c.again == nil {
		return problem.New(problem.Unauthenticated, "")
	}
	return c.again(ctx)
}

type callerKey struct{}

// Of returns the caller in the context of an operation that requires one. The zero Caller may do nothing.
func Of(ctx context.Context) Caller {
	caller, _ := ctx.Value(callerKey{}).(Caller)
	return caller
}

// Event returns the record of a write, with the caller and the time filled in.
func (c Caller) Event(ctx context.Context, now time.Time, action, object string) store.Event {
	return store.Event{At: now, Actor: c.Token.ID, Action: action, Object: object, Tenant: c.Token.Tenant, Address: request.Address(ctx), RequestID: request.ID(ctx)}
}

// Authenticator verifies tokens.
type Authenticator struct {
	Tokens store.Tokens
	// Projects verifies the JWTs of projects.
	Projects *signing.Keys
	// Issuers verifies the ID tokens of people, nil if there are none. Owners has the scopes of people.
	Issuers *oidc.Issuers
	Owners  *owners.Owners
	// Limit returns a Problem if the caller sent too many requests, otherwise nil.
	Limit func(id string) *problem.Problem
	Now   func() time.Time

	memory memory
}

// Describe adds how callers authenticate to the OpenAPI document.
func Describe(document *huma.OpenAPI) {
	if document.Components.SecuritySchemes == nil {
		document.Components.SecuritySchemes = map[string]*huma.SecurityScheme{}
	}
	document.Components.SecuritySchemes[scheme] = &huma.SecurityScheme{
		Type: "http", Scheme: "bearer", BearerFormat: token.Prefix + "…", Description: "A token, the JWT of a project, or the ID token of a person, in the header Authorization.",
	}
}

// Middleware refuses requests without a valid token to operations that require one.
func (a *Authenticator) Middleware(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if len(ctx.Operation().Security) == 0 {
			next(ctx)
			return
		}
		caller, refused := a.caller(ctx.Context(), ctx.Header("Authorization"))
		if refused != nil {
			if refused.Status == http.StatusUnauthorized {
				ctx.SetHeader("WWW-Authenticate", `Bearer realm="kubeop"`)
			}
			refused.Refuse(api, ctx)
			return
		}
		if refused := a.Limit(cmp.Or(caller.share, caller.Token.ID)); refused != nil {
			refused.Refuse(api, ctx)
			return
		}
		log := logr.FromContextOrDiscard(ctx.Context()).WithValues("caller", caller.Token.ID)
		next(huma.WithContext(ctx, logr.NewContext(context.WithValue(ctx.Context(), callerKey{}, caller), log)))
	}
}

// caller returns the holder of the token in a header. The answer says that a token expired or was revoked only to its holder.
func (a *Authenticator) caller(ctx context.Context, header string) (Caller, *problem.Problem) {
	kind, text, _ := strings.Cut(header, " ")
	if !strings.EqualFold(kind, "Bearer") {
		return Caller{}, problem.New(problem.Unauthenticated, noToken)
	}
	if token.IsToken(text) {
		return a.callerOf(ctx, token.Hash(text))
	}
	issuer, is := token.Issuer(text)
	switch {
	case !is:
		return Caller{}, problem.New(problem.Unauthenticated, noToken)
	case issuer == a.Projects.Issuer:
		return a.ofProject(text)
	case a.Issuers.Has(issuer):
		return a.ofPerson(ctx, issuer, text)
	}
	return Caller{}, problem.New(problem.Unauthenticated, invalidJWT)
}

// The answers to a caller without a valid token. They do not say why a JWT is invalid, because that would help only to forge one.
const (
	noToken    = "The header Authorization has no token of kubeop."
	invalidJWT = "The JWT is not one that the manager takes, or it is not valid."
)

func (a *Authenticator) callerOf(ctx context.Context, hash []byte) (Caller, *problem.Problem) {
	held, fromStore, err := a.held(ctx, hash)
	now := a.Now()
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Caller{}, problem.New(problem.Unauthenticated, "The token is unknown.")
	case err != nil:
		return Caller{}, problem.FromStore(ctx, err)
	case !held.Revoked.IsZero():
		return Caller{}, problem.New(problem.Unauthenticated, "The token was revoked.")
	case !now.Before(held.Expires):
		return Caller{}, problem.New(problem.Unauthenticated, "The token expired.")
	}
	grant, err := access.Parse(held.Scopes)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Reading the scopes of a token", "token", held.ID)
		return Caller{}, problem.New(problem.Unauthenticated, "The scopes of the token are unknown to this version.")
	}
	if fromStore && now.Sub(held.LastUsed) >= useEvery {
		// The request goes on if this fails: a full store can still identify the caller.
		if err := a.Tokens.UseToken(ctx, held.ID, now); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Recording the use of a token", "token", held.ID)
		}
	}
	again := func(ctx context.Context) *problem.Problem {
		_, refused := a.callerOf(ctx, hash)
		return refused
	}
	return Caller{Token: held, Grant: grant, again: again}, nil
}

// held returns a token from the store. While the store fails, it returns what the store answered shortly before.
func (a *Authenticator) held(ctx context.Context, hash []byte) (t store.Token, fromStore bool, err error) {
	limited := ctx
	if a.memory.has(hash) {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
	}
	t, err = a.Tokens.TokenByHash(limited, hash)
	switch {
	case err == nil:
		a.memory.keep(t, a.Now())
	case errors.Is(err, store.ErrNotFound):
		a.memory.forget(hash)
	case ctx.Err() == nil: // Otherwise it is the request that ended.
		remembered, first, has := a.memory.recall(hash, a.Now())
		if first {
			logr.FromContextOrDiscard(ctx).Error(err, "The store fails. Tokens that it confirmed in the minute before stay valid meanwhile")
		}
		if has {
			return remembered, false, nil
		}
	}
	return t, true, err
}
